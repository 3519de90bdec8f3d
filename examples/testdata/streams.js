// Opens its own standard streams by name and writes to them.
const fs = require("node:fs");
fs.writeFileSync("/dev/stdout", "to stdout by name\n");
fs.writeFileSync("/dev/stderr", "to stderr by name\n");
fs.writeFileSync("/dev/null", "to nowhere");
