package profiles_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/seccomp"
)

// sockets answers for socket files that lie where they are named, each another object, and
// for links.
func sockets(links map[string]string, paths ...string) func(*profiles.Facts) {
	return func(f *profiles.Facts) {
		f.Sockets = map[string]profiles.Socket{}
		number := map[string]uint64{}
		object := func(real string) profiles.Socket {
			if number[real] == 0 {
				number[real] = uint64(len(number) + 1)
			}
			return profiles.Socket{State: profiles.SocketThere, Real: real, Device: 1, Inode: number[real]}
		}
		for _, p := range paths {
			f.Sockets[p] = object(p)
		}
		for from, to := range links {
			f.Sockets[from] = object(to)
		}
	}
}

func TestCompileSockets(t *testing.T) {
	at := func(column int) sandbox.Origin {
		return sandbox.Origin{Source: "p.yaml", Line: 3, Column: column}
	}
	p := parse(t, `network: {unix: [/srv/app.sock, "${cwd}/../x.sock", /link, {path: /run/docker.sock, broad: true, reason: it builds images}, /srv/app.sock]}`+"\n")
	f := profiles.FactsForTests()
	sockets(map[string]string{"/link": "/srv/other.sock"}, "/srv/app.sock", "/home/me/x.sock", "/run/docker.sock")(&f)
	r, err := profiles.Compile(p, f)
	if err != nil {
		t.Fatal(err)
	}
	want := []sandbox.UnixGrant{
		{Path: "/srv/app.sock", Origin: at(18)},
		{Path: "/home/me/x.sock", Origin: at(33)},
		{Path: "/srv/other.sock", Origin: at(53)},
		{Path: "/run/docker.sock", Broad: "it builds images", Origin: at(67)},
	}
	if diff := cmp.Diff(want, r.Plan.Network.Unix); diff != "" {
		t.Errorf("sockets (-want +got):\n%s", diff)
	}
	if !r.Plan.Supervised() || r.Plan.Network.Egress != sandbox.EgressNone {
		t.Errorf("network %+v", r.Plan.Network)
	}
	if diff := cmp.Diff(seccomp.Policy{Supervision: seccomp.SupervisedUnix}, r.Plan.Filter); diff != "" {
		t.Errorf("filter (-want +got):\n%s", diff)
	}
	if !slices.Contains(r.Notes, "network.unix: /link leads to /srv/other.sock") {
		t.Errorf("the link is not in the notes: %q", r.Notes)
	}
	if slices.ContainsFunc(r.Plan.Env, func(e string) bool { return strings.HasPrefix(e, "RES_OPTIONS") }) {
		t.Error("resolvers are told about name servers that cannot be reached")
	}
	var open []string
	for _, o := range r.Residual {
		open = append(open, o.Open)
	}
	for _, phrase := range []string{"/run/docker.sock is granted: it builds images", "SO_PEERCRED", "a supervisor stays"} {
		if !strings.Contains(strings.Join(open, "\n"), phrase) {
			t.Errorf("%q is not said", phrase)
		}
	}
}

// TestSocketsBesideAll: the supervisor that sockets need lets everything else through.
func TestSocketsBesideAll(t *testing.T) {
	r := mustCompile(t, parse(t, "network: {egress: all, unix: [/srv/s], listen: [80]}\n"), sockets(nil, "/srv/s"))
	want := seccomp.Policy{Sockets: seccomp.InternetSockets, Listening: seccomp.ListenAllowed, Supervision: seccomp.SupervisedInternet}
	if diff := cmp.Diff(want, r.Plan.Filter); diff != "" {
		t.Errorf("filter (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("list\n0.0.0.0/0:1-65535 strict all [p.yaml:3:19]\n[::/0]:1-65535 strict all [p.yaml:3:19]\n", rulesText(r.Plan.Network)); diff != "" {
		t.Errorf("egress (-want +got):\n%s", diff)
	}
	direct := egress.NewDecider(r.Plan.Network.Rules, nil)
	for _, to := range []string{"127.0.0.1:53", "[::1]:1", "169.254.169.254:80", "203.0.113.1:65535", "[2001:db8::1]:443"} {
		addr := mustAddrPort(t, to)
		if direct.Stream(addr).Verdict != egress.Direct || direct.Datagram(addr).Verdict != egress.Direct {
			t.Errorf("%s is not let through", to)
		}
	}
	plain := mustCompile(t, parse(t, "network: {egress: all, listen: [80]}\n"), nil)
	for _, c := range profiles.Diff(plain, r) {
		if c.Effect == profiles.Widening && c.What != "unix /srv/s" {
			t.Errorf("beside the socket: %s", c)
		}
	}
}

func TestSocketsAreRefused(t *testing.T) {
	facts := func(f *profiles.Facts) {
		sockets(nil)(f)
		f.Sockets["/folder"] = profiles.Socket{State: profiles.SocketFolder, Real: "/folder"}
		f.Sockets["/file"] = profiles.Socket{State: profiles.SocketOther, Real: "/file"}
		f.Sockets["/home/me/.local/state/stockade/x"] = profiles.Socket{State: profiles.SocketThere, Real: "/home/me/.local/state/stockade/x"}
		f.Runtime = ""
	}
	tests := []struct{ entry, want string }{
		{"/absent", `network.unix: "/absent" does not exist | start what makes it first, or correct the path`},
		{"/folder", `network.unix: "/folder" is a folder | name the socket file itself`},
		{"/file", `network.unix: "/file" is no socket | name the socket file itself`},
		{"${runtime}/x", `network.unix: ${runtime} is not set: XDG_RUNTIME_DIR is not set | set it in the host's configuration, or name the folder`},
		{"{path: /home/me/.local/state/stockade/x, broad: true, reason: r}", `network.unix: "/home/me/.local/state/stockade/x" lies among stockade's own files | no profile can grant this`},
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			if tt.entry[0] != '{' {
				tt.entry = fmt.Sprintf("%q", tt.entry)
			}
			_, err := compile(t, parse(t, "network: {unix: ["+tt.entry+"]}\n"), facts)
			got := problems(t, err)
			if len(got) != 1 || !strings.HasPrefix(got[0], "3:") || got[0][strings.Index(got[0], " ")+1:] != tt.want {
				t.Errorf("problems:\n got %q\nwant %s", got, tt.want)
			}
		})
	}
}

// TestGuardedSockets: each socket of the table, and each way to it, needs a reason; the
// sockets of applications do not.
func TestGuardedSockets(t *testing.T) {
	tests := []struct {
		name, path string
		links      map[string]string
		change     func(*profiles.Facts)
		why        string // "" when it may be granted
	}{
		{name: "application", path: "/srv/app.sock"},
		{name: "application of the session", path: "/run/user/1000/app.sock"},
		{name: "database", path: "/run/postgresql/.s.PGSQL.5432"},
		{name: "a name that begins alike", path: "/run/dockerish/x"},
		{name: "temporary", path: "/tmp/app-1/sock"},

		{name: "docker", path: "/run/docker.sock", why: "container engine"},
		{name: "docker's plugin", path: "/run/docker/plugins/x.sock", why: "container engine"},
		{name: "docker by its old name", path: "/var/run/docker.sock", links: map[string]string{"/var/run/docker.sock": "/run/docker.sock"}, why: "container engine"},
		{name: "docker elsewhere", path: "/srv/docker.sock", why: "container engine"},
		{name: "rootless docker", path: "/run/user/1000/docker.sock", why: "container engine"},
		{name: "podman", path: "/run/podman/podman.sock", why: "container engine"},
		{name: "rootless podman", path: "/run/user/1000/podman/podman.sock", why: "container engine"},
		{name: "containerd", path: "/run/containerd/containerd.sock", why: "container engine"},
		{name: "lima", path: "/home/me/.lima/default/sock/x.sock", why: "container engine"},
		{name: "session bus", path: "/run/user/1000/bus", why: "services of the session"},
		{name: "system bus", path: "/run/dbus/system_bus_socket", why: "system's services"},
		{name: "systemd", path: "/run/systemd/private", why: "system's services"},
		{name: "the person's systemd", path: "/run/user/1000/systemd/private", why: "services of the session"},
		{name: "GPG agent", path: "/run/user/1000/gnupg/S.gpg-agent.ssh", why: "your keys"},
		{name: "GPG agent at home", path: "/home/me/.gnupg/S.gpg-agent", why: "OpenPGP keys"},
		{name: "a connection of ssh", path: "/home/me/.ssh/control-x", why: "SSH keys"},
		{name: "keyring", path: "/run/user/1000/keyring/ssh", why: "your keys"},
		{name: "Wayland", path: "/run/user/1000/wayland-0", why: "the screen"},
		{name: "X11", path: "/tmp/.X11-unix/X0", why: "the screen"},
		{name: "PipeWire", path: "/run/user/1000/pipewire-0", why: "the microphone"},
		{name: "nscd", path: "/run/nscd/socket", why: "looks up any name"},
		{name: "resolved", path: "/run/systemd/resolve/io.systemd.Resolve", why: "system's services"},
		{name: "tmux", path: "/tmp/tmux-1000/default", why: "your terminals"},
		{name: "SSH agent", path: "/tmp/ssh-abc/agent.12", why: "your keys"},

		{name: "link to docker", path: "/srv/x.sock", links: map[string]string{"/srv/x.sock": "/run/docker.sock"}, why: "container engine"},
		{
			name: "SSH agent by variable", path: "/srv/agent", why: "SSH_AUTH_SOCK",
			change: func(f *profiles.Facts) { f.Env["SSH_AUTH_SOCK"] = "/srv/agent" },
		},
		{
			name: "what the variable's link leads to", path: "/srv/real-agent", links: map[string]string{"/srv/agent": "/srv/real-agent"}, why: "SSH_AUTH_SOCK",
			change: func(f *profiles.Facts) { f.Env["SSH_AUTH_SOCK"] = "/srv/agent" },
		},
		{
			name: "another name of the same object", path: "/srv/hard-link", why: "SSH_AUTH_SOCK",
			change: func(f *profiles.Facts) {
				f.Env["SSH_AUTH_SOCK"] = "/srv/agent"
				f.Sockets["/srv/agent"] = profiles.Socket{State: profiles.SocketThere, Real: "/srv/agent", Device: 1, Inode: 1}
			},
		},
		{
			name: "bus by variable", path: "/srv/bus", why: "DBUS_SESSION_BUS_ADDRESS",
			change: func(f *profiles.Facts) {
				f.Env["DBUS_SESSION_BUS_ADDRESS"] = "tcp:host=x;unix:guid=1,path=/srv/bus"
			},
		},
		{
			name: "engine by variable", path: "/srv/engine", why: "DOCKER_HOST",
			change: func(f *profiles.Facts) { f.Env["DOCKER_HOST"] = "unix:///srv/engine" },
		},
		{
			name: "Wayland by variable", path: "/run/user/1000/other", why: "WAYLAND_DISPLAY",
			change: func(f *profiles.Facts) { f.Env["WAYLAND_DISPLAY"] = "other" },
		},
		{
			name: "tmux by variable", path: "/srv/tmux", why: "TMUX",
			change: func(f *profiles.Facts) { f.Env["TMUX"] = "/srv/tmux,12,0" },
		},
		{
			name: "session folder elsewhere", path: "/srv/session/bus", why: "services of the session",
			change: func(f *profiles.Facts) { f.Runtime = "/srv/session" },
		},
		{
			name: "session folder behind a link", path: "/run/user/1000/bus", why: "services of the session",
			change: func(f *profiles.Facts) { f.Runtime = "" },
		},
		{
			name: "another person's session", path: "/run/user/7/app.sock", why: "root reaches",
			change: func(f *profiles.Facts) { f.UID = 0 },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			facts := func(f *profiles.Facts) {
				sockets(tt.links, tt.path)(f)
				if tt.change != nil {
					tt.change(f)
				}
			}
			_, err := compile(t, parse(t, fmt.Sprintf("network: {unix: [%q]}\n", tt.path)), facts)
			switch {
			case tt.why == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.why != "" && err == nil:
				t.Error("granted without a reason")
			case tt.why != "":
				got := problems(t, err)
				if len(got) != 1 || !strings.Contains(got[0], "hands out more than itself: ") || !strings.Contains(got[0], tt.why) || !strings.Contains(got[0], "broad: true") {
					t.Errorf("problems %q, want one with %q", got, tt.why)
				}
			}
			if _, err := compile(t, parse(t, fmt.Sprintf("network: {unix: [{path: %q, broad: true, reason: it has to}]}\n", tt.path)), facts); err != nil {
				t.Errorf("refused with a reason: %v", err)
			}
			p, err := profiles.Empty().With(profiles.Flags{Unix: []string{tt.path}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := compile(t, p, facts); (err == nil) != (tt.why == "") {
				t.Errorf("by a flag: %v", err)
			}
		})
	}
}

// TestWantsSockets: what a caller looks at are the granted paths and every place that they
// must not turn out to be, and nothing without network.unix.
func TestWantsSockets(t *testing.T) {
	f := profiles.FactsForTests()
	f.Env["SSH_AUTH_SOCK"] = "/srv/agent"
	f.Runtime = ""
	w := parse(t, "network: {unix: [\"${cwd}/../s\", \"${runtime}/x\"]}\n").Wants(f)
	for _, want := range []string{"/home/me/s", "/run/docker", "/srv/agent", "/home/me/.ssh", "/run/user/1000/bus", "/home/me/.local/state/stockade"} {
		if !slices.Contains(w.Sockets, want) {
			t.Errorf("%s is not asked for", want)
		}
	}
	for _, path := range w.Sockets {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			t.Errorf("%q is asked for", path)
		}
	}
	if w := profiles.Empty().Wants(f); len(w.Sockets) > 0 {
		t.Errorf("the empty profile asks for %q", w.Sockets)
	}
}
