// Tries its temporary folder and the host's, and prints what came of it.
// Usage: scratch.js FOLDER-OF-THE-HOST
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

function attempt(action) {
  try {
    return action();
  } catch (error) {
    return error.code;
  }
}
const foreign = path.join(process.argv[2], "foreign");
console.log(JSON.stringify({
  tmpdir: os.tmpdir(),
  variable: process.env.TMPDIR,
  mode: attempt(() => (fs.statSync(os.tmpdir()).mode & 0o777).toString(8)),
  empty: attempt(() => fs.readdirSync(os.tmpdir()).length),
  made: attempt(() => fs.mkdtempSync(path.join(os.tmpdir(), "case-")).startsWith(os.tmpdir())),
  foreign: attempt(() => fs.writeFileSync(foreign, "x") ?? "written"),
}));
