package profiles

import (
	"path/filepath"
	"slices"
	"strings"
)

// Sockets that hand out more than themselves: whoever talks to one of them starts programs
// outside the jail, uses keys, reads the screen, or asks names past network.egress. Each
// may be granted only with broad and a reason. Compile compares real paths and objects, so
// links, hard links and bind mounts do not get around the table.

// guardedSocket is one line of the table: the tree at path, or sockets by the name base,
// in the tree at path or, without a path, anywhere.
type guardedSocket struct{ path, base, why string }

const (
	engineWhy   = "a container engine starts programs with any rights, on any files"
	busWhy      = "services of the session start programs outside the jail for whoever asks"
	systemWhy   = "the system's services act for whoever asks"
	agentWhy    = "an agent signs and logs in with your keys"
	displayWhy  = "a display server hands out the screen, the keyboard and the clipboard"
	soundWhy    = "it hands out the microphone and the screen"
	terminalWhy = "it starts programs in your terminals and editors, outside the jail"
	namesWhy    = "it looks up any name, past network.egress"
)

// systemSockets lie at fixed places.
var systemSockets = [...]guardedSocket{
	{path: "/run/docker", why: engineWhy},
	{path: "/run/podman", why: engineWhy},
	{path: "/run/containerd", why: engineWhy},
	{path: "/run/crio", why: engineWhy},
	{path: "/run/k3s", why: engineWhy},
	{path: "/run/buildkit", why: engineWhy},
	{path: "/run/libvirt", why: engineWhy},
	{path: "/run/snapd.socket", why: engineWhy},
	{path: "/run/snapd-snap.socket", why: engineWhy},
	{path: "/var/lib/lxd", why: engineWhy},
	{path: "/var/snap/lxd", why: engineWhy},
	{path: "/var/lib/incus", why: engineWhy},
	{path: "/run/dbus", why: systemWhy},
	{path: "/run/systemd", why: systemWhy},
	{path: "/run/polkit", why: systemWhy},
	{path: "/run/tailscale", why: systemWhy},
	{path: "/run/cups", why: systemWhy},
	{path: "/run/nscd", why: namesWhy},
	{path: "/run/avahi-daemon", why: namesWhy},
	{path: "/tmp/.X11-unix", why: displayWhy},
	{path: "/tmp/.ICE-unix", why: displayWhy},
	{path: "/run/screen", why: terminalWhy},
}

// namedSockets are known by name, wherever they lie.
var namedSockets = [...]guardedSocket{
	{base: "docker*.sock", why: engineWhy},
	{base: "podman*.sock", why: engineWhy},
	{base: "containerd*.sock*", why: engineWhy},
	{base: "crio.sock", why: engineWhy},
	{base: "buildkitd.sock", why: engineWhy},
	{base: "S.gpg-agent*", why: agentWhy},
	{base: "S.scdaemon", why: agentWhy},
	{base: "S.keyboxd", why: agentWhy},
}

// runtimeSockets lie below $XDG_RUNTIME_DIR.
var runtimeSockets = [...]guardedSocket{
	{path: "docker", why: engineWhy},
	{path: "podman", why: engineWhy},
	{path: "containerd", why: engineWhy},
	{path: "containerd-rootless", why: engineWhy},
	{path: "buildkit", why: engineWhy},
	{path: "libvirt", why: engineWhy},
	{path: "bus", why: busWhy},
	{path: "dbus-1", why: busWhy},
	{path: "at-spi", why: busWhy},
	{path: "systemd", why: busWhy},
	{path: "gnupg", why: agentWhy},
	{path: "keyring", why: agentWhy},
	{path: "gcr", why: agentWhy},
	{path: "p11-kit", why: agentWhy},
	{base: "ssh-agent*", why: agentWhy},
	{base: "openssh_agent*", why: agentWhy},
	{base: "kwallet*", why: agentWhy},
	{base: "wayland-*", why: displayWhy},
	{base: "sway-ipc.*", why: terminalWhy},
	{path: "hypr", why: terminalWhy},
	{path: "i3", why: terminalWhy},
	{base: "pipewire-*", why: soundWhy},
	{path: "pulse", why: soundWhy},
	{path: "emacs", why: terminalWhy},
	{base: "nvim*", why: terminalWhy},
	{base: "kitty*", why: terminalWhy},
	{base: "vscode-*", why: terminalWhy},
}

// temporarySockets lie in folders below /tmp whose names differ from run to run.
var temporarySockets = [...]struct{ folder, why string }{
	{"tmux-", terminalWhy},
	{"ssh-", agentWhy},
	{"gpg-", agentWhy},
	{"emacs", terminalWhy},
	{"nvim", terminalWhy},
}

// homeSockets lie below the home folder. Keys and agents' folders are guarded anyway.
var homeSockets = [...]guardedSocket{
	{path: ".colima", why: engineWhy},
	{path: ".lima", why: engineWhy},
	{path: ".rd", why: engineWhy},
	{path: ".1password", why: agentWhy},
	{path: ".bitwarden-ssh-agent.sock", why: agentWhy},
	{path: ".cache/keyring", why: agentWhy},
	{path: ".emacs.d/server", why: terminalWhy},
}

// socketVariables tell where the host's own sockets lie. read takes the paths out of a
// value.
var socketVariables = [...]struct {
	name, why string
	read      func(value, runtime string) []string
}{
	{"DBUS_SESSION_BUS_ADDRESS", busWhy, busPaths},
	{"DBUS_SYSTEM_BUS_ADDRESS", systemWhy, busPaths},
	{"AT_SPI_BUS_ADDRESS", busWhy, busPaths},
	{"SSH_AUTH_SOCK", agentWhy, wholePath},
	{"GPG_AGENT_INFO", agentWhy, firstPath},
	{"GNOME_KEYRING_CONTROL", agentWhy, wholePath},
	{"DOCKER_HOST", engineWhy, urlPath},
	{"CONTAINER_HOST", engineWhy, urlPath},
	{"BUILDKIT_HOST", engineWhy, urlPath},
	{"CONTAINERD_ADDRESS", engineWhy, urlPath},
	{"WAYLAND_DISPLAY", displayWhy, belowRuntime},
	{"PIPEWIRE_REMOTE", soundWhy, belowRuntime},
	{"PULSE_SERVER", soundWhy, urlPath},
	{"SWAYSOCK", terminalWhy, wholePath},
	{"I3SOCK", terminalWhy, wholePath},
	{"NVIM", terminalWhy, wholePath},
	{"NVIM_LISTEN_ADDRESS", terminalWhy, wholePath},
	{"TMUX", terminalWhy, tmuxPath},
	{"KITTY_LISTEN_ON", terminalWhy, urlPath},
	{"VSCODE_IPC_HOOK_CLI", terminalWhy, wholePath},
	{"VSCODE_GIT_IPC_HANDLE", terminalWhy, wholePath},
}

func wholePath(value, _ string) []string { return []string{value} }

func firstPath(value, _ string) []string {
	path, _, _ := strings.Cut(value, ":")
	return []string{path}
}

func tmuxPath(value, _ string) []string {
	path, _, _ := strings.Cut(value, ",")
	return []string{path}
}

func urlPath(value, _ string) []string {
	path := strings.TrimPrefix(value, "unix:")
	if strings.HasPrefix(path, "//") {
		path = path[1:]
	}
	return []string{path}
}

func belowRuntime(value, runtime string) []string {
	if value != "" && value[0] != '/' && runtime != "" {
		value = runtime + "/" + value
	}
	return []string{value}
}

// busPaths reads a list of D-Bus addresses: "unix:path=/run/user/1000/bus,guid=...;...".
func busPaths(value, _ string) []string {
	var out []string
	for address := range strings.SplitSeq(value, ";") {
		keys, isUnix := strings.CutPrefix(address, "unix:")
		if !isUnix {
			continue
		}
		for pair := range strings.SplitSeq(keys, ",") {
			if name, path, found := strings.Cut(pair, "="); found && (name == "path" || name == "dir" || name == "tmpdir") {
				out = append(out, path)
			}
		}
	}
	return out
}

// guardedSockets makes the table for one machine.
func guardedSockets(f *Facts) []guardedSocket {
	out := slices.Concat(systemSockets[:], namedSockets[:])
	runtimes := []string{"/run/user/" + itoa(f.UID)}
	if f.Runtime != "" && f.Runtime != runtimes[0] {
		runtimes = append(runtimes, f.Runtime)
	}
	for _, folder := range runtimes {
		for _, s := range runtimeSockets {
			s.path = filepath.Join(folder, s.path)
			out = append(out, s)
		}
	}
	if f.UID == 0 {
		out = append(out, guardedSocket{path: "/run/user", why: "root reaches the sessions of all people"})
	}
	for _, s := range homeSockets {
		s.path = filepath.Join(f.Home, s.path)
		out = append(out, s)
	}
	for _, v := range socketVariables {
		for _, path := range v.read(f.Env[v.name], f.Runtime) {
			if path = filepath.Clean(path); filepath.IsAbs(path) && path != "/" {
				out = append(out, guardedSocket{path: path, why: v.why + " (" + v.name + ")"})
			}
		}
	}
	return out
}

// temporaryGuard says why a socket in a folder below /tmp is guarded, if it is.
func temporaryGuard(real string) (why string, guarded bool) {
	rest, inTmp := strings.CutPrefix(real, "/tmp/")
	folder, _, inFolder := strings.Cut(rest, "/")
	if !inTmp || !inFolder {
		return "", false
	}
	for _, t := range temporarySockets {
		if strings.HasPrefix(folder, t.folder) {
			return t.why, true
		}
	}
	return "", false
}
