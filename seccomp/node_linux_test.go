package seccomp_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// execVictims become another program.
var execVictims = jailtest.Victims{
	// exec: the policy as JSON ("" for no jail), the program, its arguments.
	"exec": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		if args[0] != "" {
			enter(s, args[0])
		}
		err := unix.Exec(args[1], args[1:], []string{"PATH=/usr/bin:/bin", "HOME=" + os.Getenv("HOME")})
		s.Failf("executing %q: %v", args[1], err)
		return jailtest.Outcome{}
	},
}

// nodesVariable lists further node programs to test, separated by colons.
const nodesVariable = "STOCKADE_TEST_NODES"

func nodes(t *testing.T) []string {
	t.Helper()
	var found []string
	jailtest.Need(t, jailtest.Probe{Name: "node", Check: func() error {
		path, err := exec.LookPath("node")
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		found = append(found, path)
		return err
	}})
	if more := os.Getenv(nodesVariable); more != "" {
		found = append(found, filepath.SplitList(more)...)
	}
	return found
}

// workScript does what servers do, and ends with one line of JSON: the marker that it came
// to its end.
const workScript = `
const fs = require('fs'), path = require('path'), cp = require('child_process'), os = require('os');
const { Worker } = require('worker_threads');
const attempt = f => { try { f(); return 'ok'; } catch (e) { return e.code; } };
(async () => {
	const dir = fs.mkdtempSync(path.join(process.argv[1], 'work-'));
	const file = path.join(dir, 'file');
	fs.writeFileSync(file, 'text', { mode: 0o600 });
	fs.renameSync(file, file + '2');
	fs.copyFileSync(file + '2', file);
	const out = {};
	out.read = fs.readFileSync(file, 'utf8');
	out.chmod = attempt(() => fs.chmodSync(file, 0o755));
	out.utimes = attempt(() => fs.utimesSync(file, 1, 1));
	out.mode = (fs.statSync(file).mode & 0o777).toString(8);
	const fd = fs.openSync(file, 'r+');
	out.fchmod = attempt(() => fs.fchmodSync(fd, 0o640));
	out.futimes = attempt(() => fs.futimesSync(fd, 1, 1));
	out.modeAfter = (fs.fstatSync(fd).mode & 0o777).toString(8);
	fs.closeSync(fd);
	const child = cp.spawnSync(process.execPath, ['-p', '6*7']);
	out.spawnSync = child.error ? child.error.code : child.stdout.toString().trim();
	out.execFileSync = cp.execFileSync('/bin/sh', ['-c', 'echo $((6*7))']).toString().trim();
	const script = path.join(dir, 'child.js');
	fs.writeFileSync(script, 'process.on("message", m => { process.send(m + 1, () => process.disconnect()); });');
	out.ipc = await new Promise((done, fail) => {
		const ipc = cp.fork(script);
		ipc.on('error', fail).on('message', done);
		ipc.send(41);
	});
	out.worker = await new Promise((done, fail) => {
		new Worker('require("worker_threads").parentPort.postMessage(42)', { eval: true }).on('message', done).on('error', fail);
	});
	out.priority = attempt(() => os.setPriority(os.getPriority()));
	out.watch = attempt(() => fs.watch(dir).close());
	out.connect = await new Promise(done => {
		require('net').connect(1, '127.0.0.1').on('error', e => done(e.code)).on('connect', () => done('ok'));
	});
	out.listen = await new Promise(done => {
		const s = require('net').createServer();
		s.on('error', e => done(e.code)).listen(0, '127.0.0.1', () => s.close(() => done('ok')));
	});
	fs.rmSync(dir, { recursive: true });
	console.log(JSON.stringify(out));
})().catch(e => { console.error(e); process.exit(1); });
`

// TestNodeUnderEveryPreset runs node under each filter, and outside.
func TestNodeUnderEveryPreset(t *testing.T) {
	for _, node := range nodes(t) {
		t.Run(strings.ReplaceAll(strings.Trim(node, "/"), "/", "-"), func(t *testing.T) {
			jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
				free := runNode(t, user, node, outside)
				want := map[string]any{
					"read": "text", "chmod": "ok", "utimes": "ok", "mode": "755", "fchmod": "ok", "futimes": "ok", "modeAfter": "640",
					"spawnSync": "42", "execFileSync": "42", "ipc": 42.0, "worker": 42.0, "priority": "ok", "watch": "ok",
					"connect": "ECONNREFUSED", "listen": "ok",
				}
				compareWork(t, "outside", want, free)
				for _, p := range presets() {
					if p.policy.Supervision != seccomp.Unsupervised {
						continue // nobody answers here
					}
					compareWork(t, p.name, expectedWork(want, p.policy), runNode(t, user, node, inside(t, p.policy)))
				}
			})
		})
	}
}

// expectedWork is what a policy changes about the script's results.
func expectedWork(free map[string]any, policy seccomp.Policy) map[string]any {
	want := maps.Clone(free)
	want["mode"], want["watch"] = "600", "EACCES"
	if policy.Metadata == seccomp.MetadataRefuse {
		want["chmod"], want["utimes"] = "EPERM", "EPERM"
	}
	switch policy.Sockets {
	case seccomp.NoSockets:
		want["connect"], want["listen"] = "EAFNOSUPPORT", "EAFNOSUPPORT"
	case seccomp.ListenSockets:
		want["connect"] = "EACCES"
	case seccomp.InternetSockets:
		if policy.Listening == seccomp.ListenRefused {
			want["listen"] = "EACCES"
		}
	}
	return want
}

func compareWork(t *testing.T, where string, want, got map[string]any) {
	t.Helper()
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("%s: %s gives %v, want %v", where, key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: got %d results, want %d", where, len(got), len(want))
	}
}

func runNode(t *testing.T, user jailtest.User, node, policy string) map[string]any {
	t.Helper()
	result := jailtest.RunAs(t, user, "exec", policy, node, "-e", workScript, jailtest.Dir(t, user))
	jailtest.WantStatus(t, result, 0)
	var out map[string]any
	if err := json.Unmarshal([]byte(result.Stdout), &out); err != nil {
		t.Fatalf("reading the script's results: %v\n%s", err, result)
	}
	return out
}
