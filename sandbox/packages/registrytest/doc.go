// Package registrytest is a package registry for tests: an npm registry and a Python index
// in one server on a loopback address, with packages that the test makes up.
//
//	r := registrytest.Start(t)
//	r.AddNPM(registrytest.NPM{Name: "@example/server", Version: "1.2.0", Files: files})
//	r.AddPython(registrytest.Wheel{Name: "example", Version: "1.0"})
//	r.Break("/npm/@example/server", registrytest.Hang)
//	… npm install --registry r.NPM() …, pip install --index-url r.Index() …
//	r.Count("/npm/@example/server")
//
// It answers the requests that npm, pip and their kin make to install something, and no
// others: nothing can be published and nothing searched. It is a registry to be broken on
// purpose, so what it serves is built once, in memory, and the same on each run.
package registrytest
