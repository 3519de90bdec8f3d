// Package packages knows package runners (npx, uvx and kin) and keeps the store of what they
// would run.
//
//	c, ok, err := packages.Parse(argv, where)      // a runner's command line, taken apart
//	e, found, err := store.Find(c.Request)         // checked against its manifest; no network
//	held, err := store.Lock(ctx, c.Request, wait)  // one install of a request at a time
//	stage, err := held.Stage()                     // an empty folder; the install jail writes it
//	e, err := held.Commit(installed)               // read-only, renamed in, recorded
//	start, err := e.Start(c)                       // the entry point's own command line
//
// It is a leaf: it starts no process, enters no jail and uses no network. Who installs gets
// the steps as data ([Step]) and carries them out in the install jail.
package packages
