// Starts other programs in every way that node has, and prints one JSON line of what
// came of it. Usage: children.js GRANTED REFUSED
const { spawn, spawnSync, execFileSync, fork } = require("node:child_process");

const [granted, refused] = process.argv.slice(2);
const result = {};

if (granted === "child") {
  process.on("message", (text) => process.send(`heard ${text}`, () => process.disconnect()));
} else {
  const sync = spawnSync(granted, ["-c"], { input: "four" });
  result.spawnSync = [sync.error?.code ?? null, sync.status, String(sync.stdout).trim()];
  result.execFileSync = String(execFileSync(granted, ["-c"], { input: "seven!!" })).trim();
  result.refused = spawnSync(refused, []).error?.code ?? "started";

  const piped = new Promise((done) => {
    const child = spawn(granted, ["-c"], { stdio: ["pipe", "pipe", "pipe"] });
    let out = "";
    child.stdout.on("data", (part) => (out += part));
    child.on("close", (status) => done([status, out.trim()]));
    child.stdin.end("x".repeat(100000));
  });
  const detached = new Promise((done) => {
    const child = spawn(granted, ["-c", "/dev/null"], { detached: true, stdio: "ignore" });
    child.on("error", (error) => done(error.code));
    child.on("close", (status) => done(status));
  });
  const forked = new Promise((done) => {
    const child = fork(__filename, ["child"]);
    child.on("error", (error) => done(error.code));
    child.on("message", done);
    child.send("you");
  });
  Promise.all([piped, detached, forked]).then(([a, b, c]) => {
    Object.assign(result, { piped: a, detached: b, forked: c });
    console.log(JSON.stringify(result));
  });
}
