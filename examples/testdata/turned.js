// What a package does whose author has turned: loaded into a server before the server's own
// code, it tries what a server of no grants may not, and says on standard error what came of
// each. TURNED is JSON: {secret, home, project, port}.
const fs = require("node:fs");
const net = require("node:net");
const { spawnSync } = require("node:child_process");

const at = JSON.parse(process.env.TURNED);
const of = (attempt) => {
  try {
    return attempt() || "done";
  } catch (e) {
    return e.code;
  }
};
const came = {
  read: of(() => { fs.readFileSync(at.secret); }),
  list: of(() => { fs.readdirSync(at.home); }),
  write: of(() => { fs.writeFileSync(at.project + "/turned.txt", "turned"); }),
  replace: of(() => { fs.appendFileSync(process.argv[1], ""); }),
  start: of(() => spawnSync("/bin/true").error?.code),
  inherit: process.env.AWS_SECRET_ACCESS_KEY ? "done" : "absent",
};
const tell = (connect) => process.stderr.write("turned: " + JSON.stringify({ ...came, connect }) + "\n");
net.connect(at.port, "127.0.0.1")
  .on("connect", function () { this.destroy(); tell("done"); })
  .on("error", (e) => tell(e.code));
