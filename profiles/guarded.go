package profiles

import (
	"path/filepath"
	"slices"

	"stockade/sandbox"
)

// Places that no ordinary grant may reach. Package sandbox compares them with the real
// paths of what grants name, so links do not get around them. The table is short on
// purpose: it is a net below mistakes, the grants themselves are the rule.

// wholePlaces hold too much: each may be granted only with broad and a reason, what lies
// in it may be granted.
var wholePlaces = [...]struct{ path, why string }{
	{"/", "the whole machine"},
	{"/proc", "other processes"},
	{"/sys", "the kernel's settings"},
	{"/dev", "all devices"},
	{"/run", "sockets and state of services"},
	{"/var/run", "sockets and state of services"},
	{"/etc", "the machine's configuration"},
	{"/root", "the home folder of root"},
	{"/home", "all home folders"},
}

// secretPlaces hold secrets of the machine, themselves and everything below.
var secretPlaces = [...]struct{ path, why string }{
	{"/etc/shadow", "password hashes"},
	{"/etc/gshadow", "password hashes"},
	{"/etc/ssh", "the machine's keys"},
	{"/etc/ssl/private", "the machine's keys"},
	{"/run/secrets", "secrets of containers"},
	{"/var/lib/docker", "the files of containers"},
}

// homePlaces lie below the home folder. Their groups:
//   - keys and tokens, as files or whole folders;
//   - password stores and browsers (cookies, saved passwords);
//   - what a shell or session runs at the next login: writing there is code outside the jail;
//   - agents and editors: their configuration starts programs, so a server that reaches it
//     starts programs outside the jail.
//
// Package sandbox lets a program's own files lie inside such a place: people start servers
// that live in an agent's folder.
var homePlaces = [...]struct{ path, why string }{
	{".ssh", "SSH keys"},
	{".gnupg", "OpenPGP keys"},
	{".aws", "AWS credentials"},
	{".azure", "Azure credentials"},
	{".config/gcloud", "Google Cloud credentials"},
	{".kube", "Kubernetes credentials"},
	{".docker", "registry credentials"},
	{".netrc", "passwords"},
	{".npmrc", "registry tokens"},
	{".pypirc", "registry tokens"},
	{".git-credentials", "passwords"},
	{".config/git/credentials", "passwords"},
	{".config/gh", "GitHub tokens"},
	{".vault-token", "a Vault token"},
	{".pgpass", "passwords"},
	{".my.cnf", "passwords"},
	{".config/rclone", "cloud credentials"},
	{".cargo/credentials.toml", "registry tokens"},
	{".m2/settings.xml", "registry tokens"},
	{".terraform.d", "cloud credentials"},
	{".config/hub", "GitHub tokens"},
	{".config/containers", "registry credentials"},
	{".password-store", "passwords"},
	{".local/share/keyrings", "passwords"},
	{".mozilla", "browser sessions"},
	{".config/google-chrome", "browser sessions"},
	{".config/chromium", "browser sessions"},
	{".config/BraveSoftware", "browser sessions"},
	{".config/microsoft-edge", "browser sessions"},
	{".bash_history", "what was typed"},
	{".zsh_history", "what was typed"},
	{".bashrc", "what runs with each shell"},
	{".profile", "what runs at each login"},
	{".bash_profile", "what runs at each login"},
	{".zshrc", "what runs with each shell"},
	{".zshenv", "what runs with each shell"},
	{".zprofile", "what runs at each login"},
	{".zlogin", "what runs at each login"},
	{".bash_login", "what runs at each login"},
	{".config/fish", "what runs with each shell"},
	{".config/environment.d", "what runs at each login"},
	{".config/nvim", "the configuration of an editor"},
	{".config/autostart", "what runs at each login"},
	{".config/systemd", "what runs at each login"},
	{".claude", "the configuration of an agent"},
	{".claude.json", "the configuration of an agent"},
	{".codex", "the configuration of an agent"},
	{".gemini", "the configuration of an agent"},
	{".copilot", "the configuration of an agent"},
	{".cursor", "the configuration of an agent"},
	{".codeium", "the configuration of an agent"},
	{".continue", "the configuration of an agent"},
	{".config/opencode", "the configuration of an agent"},
	{".config/Claude", "the configuration of an agent"},
	{".config/Code/User", "the configuration of an editor"},
	{".config/zed", "the configuration of an editor"},
}

// guarded makes the table for one machine.
func guarded(f *Facts) []sandbox.Guarded {
	out := make([]sandbox.Guarded, 0, len(wholePlaces)+len(secretPlaces)+len(homePlaces)+11)
	for _, w := range wholePlaces {
		out = append(out, sandbox.Guarded{Path: w.path, Why: w.why})
	}
	for _, s := range secretPlaces {
		out = append(out, sandbox.Guarded{Path: s.path, Why: s.why, Rule: sandbox.GuardTree})
	}
	for _, base := range [...]string{f.Config, f.State, f.Data, f.Cache} {
		if base != "" {
			out = append(out, sandbox.Guarded{Path: ours(base), Why: "stockade's own files", Rule: sandbox.GuardAlways})
		}
	}
	if f.State != "" {
		// Approvals: a server that could write them would allow itself what it wants.
		out = append(out, sandbox.Guarded{Path: ours(f.State) + "/approvals", Why: "what you allowed", Rule: sandbox.GuardNeverWrite})
	}
	out = guardStore(out, f)
	if f.Home == "" || f.Home == "/" {
		return out
	}
	// The guard on a folder holds for the folders above it as well.
	home := sandbox.Guarded{Path: filepath.Clean(f.Home), Why: "your home folder"}
	if !slices.ContainsFunc(out, func(g sandbox.Guarded) bool { return g.Path == home.Path }) {
		out = append(out, home)
	}
	for _, h := range homePlaces {
		out = append(out, sandbox.Guarded{Path: home.Path + "/" + h.path, Why: h.why, Rule: sandbox.GuardTree})
	}
	return out
}

// guardStore opens the program's own entry of the store to its runtime's needs, and an
// install's stage to the programs that it installs with. A store that a link moved elsewhere
// is a place of its own.
func guardStore(out []sandbox.Guarded, f *Facts) []sandbox.Guarded {
	if f.Packages == "" {
		return out
	}
	if f.Packages != storeBelow(f.Data) {
		out = append(out, sandbox.Guarded{Path: f.Packages, Why: "the store of packages", Rule: sandbox.GuardAlways})
	}
	own := f.Stage
	if entry, inStore := stored(f.Packages, &f.Program, f.Module); inStore && own == "" {
		own = entry.folder
	}
	for i := range out {
		if out[i].Rule == sandbox.GuardAlways {
			out[i].Own = own
		}
	}
	return out
}
