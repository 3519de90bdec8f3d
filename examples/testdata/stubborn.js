// Says when it is ready, ignores the end of its input, and reports signals, until one
// that it does not handle ends it. Usage: stubborn.js [SIGNAL]...
for (const name of process.argv.slice(2)) {
  process.on(name, () => console.log(name));
}
process.stdin.resume();
setInterval(() => {}, 1 << 30);
console.log(`ready ${process.pid}`);
