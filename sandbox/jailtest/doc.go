// Package jailtest proves what the kernel refuses, for tests only.
//
// A filter or a Landlock domain cannot be taken off again, so a test must not put one on
// itself. The test binary is started a second time as a victim: it sets up its jail, does
// one operation, and reports the outcome. The test then asserts all of it: exit status,
// signal, errno, and that the victim came to its end.
//
//	var victims = jailtest.Victims{
//		"chroot": func(s *jailtest.Stage, args []string) jailtest.Outcome {
//			if err := install(filter); err != nil {
//				s.Failf("installing the filter: %v", err)
//			}
//			s.Begin()
//			_, _, errno := unix.RawSyscall(unix.SYS_CHROOT, root, 0, 0)
//			return jailtest.Outcome{Errno: errno}
//		},
//	}
//
//	func TestMain(m *testing.M) { jailtest.Main(m, victims) }
//
//	func TestChroot(t *testing.T) {
//		jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
//			jailtest.WantErrno(t, jailtest.RunAs(t, user, "chroot"), unix.EPERM)
//		})
//	}
//
// What it establishes: a victim that dies early, exits without a word, is killed by a
// signal that nobody asked for, prints half a report or hangs never counts as a success of
// any kind. Output text alone is never evidence.
//
// What it does not: it cannot tell which layer refused. Tests do that by the errno, by an
// allowed twin in the same jail, and by the same operation outside the jail.
package jailtest
