// Prints its arguments and environment names as JSON.
console.log(JSON.stringify({ args: process.argv.slice(2), env: process.env, pid: process.pid }));
