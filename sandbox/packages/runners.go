package packages

// The grammars. What each flag means is from the runners' own documentation and, for npm,
// from its launcher (bin/npx-cli.js): npx stops at the first word that is no flag.

// quiet are flags whose lack of effect nobody minds.
var quiet = []string{
	"-y", "--yes", "-q", "--quiet", "-s", "--silent", "--verbose", "-v", "--no-color", "--color", "--no-progress", "--loglevel",
	"--no-fund", "--no-audit", "--no-update-notifier", "--ignore-scripts", "--reporter", "--no-install", "--offline", "--prefer-offline",
}

var (
	npmBefore  = []string{"--prefix", "-C", "--loglevel", "-w", "--workspace", "--userconfig", "--cache", "--registry"}
	pnpmBefore = []string{"--dir", "-C", "--filter", "-F", "--loglevel", "--reporter"}
	uvBefore   = []string{"--directory", "--project", "--config-file", "--cache-dir", "--color"}
)

const (
	whyRegistry = "the registry comes from your own configuration, so that no command line can choose another"
	whyShell    = "it runs a line of shell, and there is no shell in the jail"
	whyFolder   = "what is installed does not depend on a folder"
)

var npmUses = map[string]use{
	"-p": packageFlag, "--package": packageFlag,
	"-y": idle, "--yes": idle, "-q": idle, "--quiet": idle, "-s": idle, "--silent": idle, "--verbose": idle, "-d": idle, "--no-install": idle,
	"--prefer-online": idle, "--prefer-offline": idle, "--offline": idle, "--ignore-scripts": idle, "--force": idle, "-f": idle,
	"--no-fund": idle, "--no-audit": idle, "--no-update-notifier": idle, "--no-progress": idle, "--no-color": idle, "--color": idle,
	"--loglevel": idleValue, "--cache": idleValue, "--fetch-timeout": idleValue, "--fetch-retries": idleValue,
}

var npmNever = map[string]string{
	"-c": whyShell, "--call": whyShell, "--shell": whyShell, "--script-shell": whyShell,
	"--registry": whyRegistry, "--reg": whyRegistry, "--userconfig": whyRegistry, "--globalconfig": whyRegistry,
	"-w": whyFolder, "--workspace": whyFolder, "--workspaces": whyFolder, "-ws": whyFolder, "-C": whyFolder, "--prefix": whyFolder,
	"--no": "it forbids to install", "-n": "it forbids to install", "--yes=false": "it forbids to install",
	"-g": "a global install is not used", "--global": "a global install is not used",
	"--node-options": "set NODE_OPTIONS under environment.set in a profile",
	"--node-arg":     "npx has it no more", "--always-spawn": "npx has it no more", "--shell-auto-fallback": "npx has it no more",
	"-h": "it prints help", "--help": "it prints help", "--version": "it prints a version",
}

var npx = grammar{runner: "npx", kind: NPM, spec: npmSpec, uses: npmUses, never: npmNever, cure: "stockade run -- npx -y PACKAGE [ARG]..."}

var npmExec = grammar{runner: "npm exec", kind: NPM, spec: npmSpec, uses: npmUses, never: npmNever, everywhere: true, cure: "stockade run -- npm exec -y -- PACKAGE [ARG]..."}

var bunx = grammar{
	runner: "bunx", kind: NPM, spec: npmSpec, cure: "stockade run -- bunx PACKAGE [ARG]...",
	uses: map[string]use{
		"-p": packageFlag, "--package": packageFlag, "--bun": bunFlag, "-b": bunFlag,
		"-y": idle, "--yes": idle, "--silent": idle, "--verbose": idle, "--no-install": idle,
	},
	never: map[string]string{
		"--cwd": whyFolder, "--registry": whyRegistry, "-c": whyRegistry, "--config": whyRegistry,
		"-h": "it prints help", "--help": "it prints help",
	},
}

var pnpmDlx = grammar{
	runner: "pnpm dlx", kind: NPM, spec: npmSpec, cure: "stockade run -- pnpm dlx PACKAGE [ARG]...",
	uses: map[string]use{
		"--package": packageFlag, "-s": idle, "--silent": idle, "--reporter": idleValue, "--loglevel": idleValue, "--color": idle, "--no-color": idle,
		"--prefer-offline": idle, "--offline": idle, "-y": idle, "--yes": idle,
	},
	never: map[string]string{
		"-c": whyShell, "--shell-mode": whyShell, "--registry": whyRegistry, "--dir": whyFolder, "-C": whyFolder, "--filter": whyFolder, "-F": whyFolder,
		"--allow-build": "packages whose install scripts may run are named in a profile, under install.scripts", "--cpu": "the package is for this machine",
		"--os": "the package is for this machine", "--libc": "the package is for this machine", "-h": "it prints help", "--help": "it prints help",
	},
}

var yarnDlx = grammar{
	runner: "yarn dlx", kind: NPM, spec: npmSpec, cure: "stockade run -- yarn dlx PACKAGE [ARG]...",
	uses:  map[string]use{"-p": packageFlag, "--package": packageFlag, "-q": idle, "--quiet": idle},
	never: map[string]string{"--cwd": whyFolder, "-h": "it prints help", "--help": "it prints help"},
}

var uvUses = map[string]use{
	"--from": packageFlag, "-w": withFlag, "--with": withFlag, "-p": pythonFlag, "--python": pythonFlag,
	"--isolated": idle, "-n": idle, "--no-cache": idle, "--no-cache-dir": idle, "--offline": idle, "-q": idle, "--quiet": idle, "-v": idle, "--verbose": idle,
	"--refresh": idle, "--reinstall": idle, "-U": idle, "--upgrade": idle, "--no-progress": idle, "--native-tls": idle, "--managed-python": idle,
	"--no-managed-python": idle, "--no-python-downloads": idle, "--no-env-file": idle, "--compile-bytecode": idle, "--no-color": idle,
	"--refresh-package": idleValue, "--reinstall-package": idleValue, "-P": idleValue, "--upgrade-package": idleValue,
	"--cache-dir": idleValue, "--color": idleValue, "--link-mode": idleValue, "--python-preference": idleValue,
}

var uvNever = map[string]string{
	"--index": whyRegistry, "--default-index": whyRegistry, "-i": whyRegistry, "--index-url": whyRegistry, "--extra-index-url": whyRegistry,
	"-f": whyRegistry, "--find-links": whyRegistry, "--no-index": whyRegistry, "--index-strategy": whyRegistry, "--keyring-provider": whyRegistry,
	"--allow-insecure-host": whyRegistry, "--config-file": whyRegistry, "--no-config": whyRegistry,
	"--directory": whyFolder, "--project": whyFolder, "--with-editable": "an editable package is not installed, but read where it lies",
	"--with-requirements": "name the packages with --with", "-c": "name the versions in --from and --with", "--constraints": "name the versions in --from and --with",
	"-b": "name the versions in --from and --with", "--build-constraints": "name the versions in --from and --with", "--overrides": "name the versions in --from and --with",
	"--env-file": "variables are named in a profile, under environment", "--resolution": "name the versions in --from and --with",
	"--prerelease": "name the version in --from", "--pre": "name the version in --from", "--exclude-newer": "name the versions in --from and --with",
	"--no-build": "nothing is built, unless a profile lists it under install.scripts", "--no-binary": "only wheels are installed",
	"--no-sources": "only what the index has is installed", "--python-platform": "the package is for this machine", "--torch-backend": "name the packages with --with",
	"-h": "it prints help", "--help": "it prints help", "-V": "it prints a version", "--version": "it prints a version",
}

var uvx = grammar{runner: "uvx", kind: PyPI, spec: pypiSpec, uses: uvUses, never: uvNever, cure: "stockade run -- uvx [--from PACKAGE] [--with PACKAGE] [--python VERSION] PROGRAM [ARG]..."}

var uvToolRun = grammar{runner: "uv tool run", kind: PyPI, spec: pypiSpec, uses: uvUses, never: uvNever, cure: "stockade run -- uv tool run [--from PACKAGE] [--with PACKAGE] [--python VERSION] PROGRAM [ARG]..."}

var pipxRun = grammar{
	runner: "pipx run", kind: PyPI, spec: pypiSpec, cure: "stockade run -- pipx run [--spec PACKAGE] [--python VERSION] PROGRAM [ARG]...",
	uses: map[string]use{
		"--spec": packageFlag, "--with": withFlag, "--python": pythonFlag, "--no-cache": idle, "--verbose": idle, "-v": idle, "--quiet": idle, "-q": idle,
		"--fetch-missing-python": idle,
	},
	never: map[string]string{
		"-i": whyRegistry, "--index-url": whyRegistry, "--pip-args": whyRegistry, "--path": "a script by its path is run as python FILE",
		"--pypackages": whyFolder, "--system-site-packages": "the virtual environment holds the package and what it needs, and nothing else",
		"--backend": "stockade installs itself", "-h": "it prints help", "--help": "it prints help",
	},
}
