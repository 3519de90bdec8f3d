package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/sandbox/forecast"
	"stockade/sandbox/supervise"
)

const lessonHome = "/no/home"

func newTestLessons() *lessons {
	const home = lessonHome
	plan := sandbox.Plan{Name: "p", Guarded: []sandbox.Guarded{
		{Path: "/etc", Why: "the machine's configuration"},
		{Path: home, Why: "your home folder"},
		{Path: home + "/.ssh", Why: "SSH keys", Rule: sandbox.GuardTree},
		{Path: home + "/.config/stockade", Why: "stockade's own files", Rule: sandbox.GuardAlways},
	}}
	return newLessons(advisor{plan: plan, source: "/no/p.yaml", dir: "/no"}, home)
}

func TestLessons(t *testing.T) {
	const home = lessonHome
	ask := func(op supervise.Operation, use forecast.Use, paths ...string) (out []supervise.Refusal) {
		for _, path := range paths {
			out = append(out, supervise.Refusal{Program: "node", PID: 7, Call: "openat", Operation: op, Path: path, Grant: path, Uses: use})
		}
		return out
	}
	read := func(paths ...string) []supervise.Refusal { return ask(supervise.Reading, forecast.UseRead, paths...) }
	write := func(paths ...string) []supervise.Refusal { return ask(supervise.Writing, forecast.UseWrite, paths...) }
	for _, tt := range []struct {
		name  string
		asked []supervise.Refusal
		want  []string
	}{
		{"two files stay files", read("/srv/x/a", "/srv/x/b"), []string{"filesystem.read /srv/x/a", "filesystem.read /srv/x/b"}},
		{"three are the folder", read("/srv/x/a", "/srv/x/b", "/srv/x/c"), []string{"filesystem.read /srv/x"}},
		{"one file often is one file", read("/srv/x/a", "/srv/x/a", "/srv/x/a"), []string{"filesystem.read /srv/x/a"}},
		{"folders of folders", read("/srv/x/1/a", "/srv/x/1/b", "/srv/x/1/c", "/srv/x/2/a", "/srv/x/3/b", "/srv/x/d", "/srv/x/e"), []string{"filesystem.read /srv/x"}},
		{"never the top", read("/srv/a", "/srv/b", "/srv/c", "/a", "/b", "/c"), []string{
			"filesystem.read /a", "filesystem.read /b", "filesystem.read /c", "filesystem.read /srv/a", "filesystem.read /srv/b", "filesystem.read /srv/c",
		}},
		{"never home", read(home+"/a", home+"/b", home+"/c"), []string{"filesystem.read " + home + "/a", "filesystem.read " + home + "/b", "filesystem.read " + home + "/c"}},
		{"never what holds home", read("/no/a", "/no/b", "/no/c"), []string{"filesystem.read /no/a", "filesystem.read /no/b", "filesystem.read /no/c"}},
		{"never the system's", read("/usr/lib/x/a", "/usr/lib/x/b", "/usr/lib/x/c"), []string{"filesystem.read /usr/lib/x/a", "filesystem.read /usr/lib/x/b", "filesystem.read /usr/lib/x/c"}},
		{"nor those of services", read("/var/lib/a", "/var/lib/b", "/var/lib/c"), []string{"filesystem.read /var/lib/a", "filesystem.read /var/lib/b", "filesystem.read /var/lib/c"}},
		{"writing holds reading", append(read("/srv/x/d/a"), write("/srv/x/a", "/srv/x/b", "/srv/x/c")...), []string{"filesystem.write /srv/x"}},
		{"reading holds no writing", append(read("/srv/x/a", "/srv/x/b", "/srv/x/c"), write("/srv/x/a")...), []string{"filesystem.read /srv/x", "filesystem.write /srv/x/a"}},
		{"a name that begins alike", append(read("/srv/xy/a"), write("/srv/x/a", "/srv/x/b", "/srv/x/c")...), []string{"filesystem.read /srv/xy/a", "filesystem.write /srv/x"}},
		{"programs stay programs", ask(supervise.Executing, forecast.UseRead|forecast.UseExecute, "/srv/x/a", "/srv/x/b", "/srv/x/c"), []string{
			"filesystem.execute /srv/x/a", "filesystem.execute /srv/x/b", "filesystem.execute /srv/x/c",
		}},
		{"what runtimes probe", read("/proc/7/cgroup", "/etc/resolv.conf"), nil},
		{"keys are never proposed", read(home+"/.ssh/a", home+"/.ssh/b", home+"/.ssh/c", home+"/.config/stockade/x", home, "/etc"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newTestLessons()
			for _, r := range tt.asked {
				l.refused(r)
			}
			var got []string
			for _, a := range l.additions() {
				got = append(got, a.Key+" "+a.Entry)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestLessonsSayWhoAsked: each entry has its programs, calls and how often.
func TestLessonsSayWhoAsked(t *testing.T) {
	l := newTestLessons()
	for i, program := range []string{"node", "git", "node"} {
		l.refused(supervise.Refusal{
			Program: program, Call: [...]string{"openat", "open", "openat"}[i], Operation: supervise.Reading,
			Path: fmt.Sprint("/srv/x/", i), Grant: fmt.Sprint("/srv/x/", i), Uses: forecast.UseRead,
		})
	}
	l.refused(supervise.Refusal{Program: "node", Call: "openat", Operation: supervise.Reading, Path: "/no/home/.ssh/id", Grant: "/no/home/.ssh/id", Uses: forecast.UseRead})
	want := []profiles.Addition{{Key: "filesystem.read", Entry: "/srv/x", Because: "git, node (open, openat, 3 times)"}}
	if diff := cmp.Diff(want, l.additions()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, l.additions()); diff != "" {
		t.Errorf("asked again, -want +got:\n%s", diff)
	}
	kept := l.withheld()
	if len(kept) != 1 || !strings.HasPrefix(kept[0], "reading /no/home/.ssh/id: asked for by node (openat); /no/home/.ssh is kept from servers (SSH keys)") {
		t.Errorf("got %q", kept)
	}
}

func TestLessonsOfTheNetwork(t *testing.T) {
	l := newTestLessons()
	for _, d := range []egress.Denial{
		{Call: "dns", Asked: "name api.example"},
		{Call: "dns", Asked: "name a.example at 10.0.0.1", Rule: "a private address"},
		{Call: "connect", Program: "node", Asked: "tcp 203.0.113.9:5432"},
		{Call: "connect", Program: "node", Asked: "tcp [2001:db8::1]:443"},
		{Call: "send", Program: "node", Asked: "udp 203.0.113.9:53", Rule: "another name server"},
		{Call: "bind", Program: "node", Asked: "tcp 0.0.0.0:8080"},
		{Call: "bind", Program: "node", Asked: "udp 0.0.0.0:8080", Rule: "for TCP"},
		{Call: "unix", Program: "node", Asked: "unix /run/x.sock", Hint: "add it"},
		{Call: "unix", Program: "node", Asked: "unix @abstract", Rule: "no file"},
	} {
		l.denied(d)
	}
	want := []profiles.Addition{
		{Key: "network.egress", Entry: "203.0.113.9:5432", Because: "node (connect)"},
		{Key: "network.egress", Entry: "[2001:db8::1]:443", Because: "node (connect)"},
		{Key: "network.egress", Entry: "api.example:443", Because: "the server (dns); 443 is a guess: the name was refused before a port was named"},
		{Key: "network.listen", Entry: "8080", Because: "node (bind)"},
		{Key: "network.unix", Entry: "/run/x.sock", Because: "node (unix)"},
	}
	if diff := cmp.Diff(want, l.additions()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if kept := l.withheld(); len(kept) != 4 {
		t.Errorf("got %q", kept)
	}
}

// TestLessonsAreBounded: a server that asks for all of a disk is remembered up to a limit.
func TestLessonsAreBounded(t *testing.T) {
	l := newTestLessons()
	for i := range 3 * mostWishes {
		path := fmt.Sprintf("/srv/%d/a", i)
		l.refused(supervise.Refusal{Call: "openat", Operation: supervise.Reading, Path: path, Grant: path, Uses: forecast.UseRead})
		l.denied(egress.Denial{Call: "relay", Asked: fmt.Sprint("server name ", i)})
	}
	if len(l.wishes) != mostWishes || len(l.kept) != mostWishes || l.beyond != 4*mostWishes {
		t.Errorf("%d, %d and %d beyond", len(l.wishes), len(l.kept), l.beyond)
	}
}
