//go:build !amd64

package seccomp_test

import "stockade/sandbox/jailtest"

// callI386 has no meaning on this machine; no test asks for it.
func callI386(s *jailtest.Stage, _ []string) func() jailtest.Outcome {
	s.Failf("there is no i386 here")
	return nil
}
