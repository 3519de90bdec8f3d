package race

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Method is how the swapper makes one name mean two things.
type Method uint8

const (
	// Exchange swaps a folder and a link with renameat2(RENAME_EXCHANGE): the name is
	// never missing.
	Exchange Method = iota
	// Rename moves the folder away and the link in, and back: the name is missing at
	// moments.
	Rename
	// Retarget keeps the name a link and changes where it points.
	Retarget
)

// Methods are all of them.
var Methods = []Method{Exchange, Rename, Retarget}

func (m Method) String() string {
	switch m {
	case Exchange:
		return "exchange"
	case Rename:
		return "rename"
	case Retarget:
		return "retarget"
	default:
		return fmt.Sprintf("method %d", uint8(m))
	}
}

// swapperName is argv[0] of the swapper process.
const swapperName = "stockade-race-swapper"

// IsSwapper says whether this process was started as the swapper. A program that uses
// [Run] asks first, and then calls [RunSwapper].
func IsSwapper() bool { return len(os.Args) > 0 && os.Args[0] == swapperName }

// Names inside the allowed root that the swapper works on.
const (
	nameUsed  = "sub"    // what the server is asked about
	nameSpare = "spare"  // the link outwards while sub is the folder
	nameAside = "aside"  // where Rename parks the folder
	nameReal  = "inside" // the folder that Retarget's link points to
)

// swapper turns one name from the folder inside to the folder outside and back.
type swapper struct {
	root    string // the allowed root
	outside string // what the link points to
	method  Method
	turned  bool // the name now leads outside
	freshNo int  // how many names were made so far
}

// RunSwapper is the swapper process: args are the method, the allowed root and the
// folder outside. It obeys lines on in and answers each with a line on out, until in
// ends; the name leads inside again before every answer and at the end.
//
//	burst DELAY HOLD COUNT   after DELAY, turn the name for HOLD, COUNT times (nanoseconds)
//	free                     turn the name without pause, until rest
//	rest                     stop that
func RunSwapper(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("starting the swapper: need method, root and outside, got %d words", len(args))
	}
	s := &swapper{root: args[1], outside: args[2]}
	for _, m := range Methods {
		if m.String() == args[0] {
			s.method = m
		}
	}
	if s.method.String() != args[0] {
		return fmt.Errorf("starting the swapper: unknown method %q", args[0])
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(in); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	for line := range lines {
		turns, err := s.obey(line, lines)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "done %d\n", turns); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	return nil
}

// obey carries out one line and returns how often the name was turned outwards.
func (s *swapper) obey(line string, lines <-chan string) (turns int, err error) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "burst":
		var delay, hold time.Duration
		var count int
		if _, err := fmt.Sscan(rest, &delay, &hold, &count); err != nil {
			return 0, fmt.Errorf("reading %q: %w", line, err)
		}
		for range count {
			pause(delay)
			if err := s.cycle(hold); err != nil {
				return turns, err
			}
			turns++
		}
		return turns, nil
	case "free":
		for {
			select {
			case next, open := <-lines:
				if open && next != "rest" {
					return turns, fmt.Errorf("reading %q: expected rest", next)
				}
				return turns, nil
			default:
			}
			if err := s.cycle(time.Duration(rand.IntN(int(300 * time.Microsecond)))); err != nil {
				return turns, err
			}
			turns++
			pause(time.Duration(rand.IntN(int(300 * time.Microsecond))))
		}
	default:
		return 0, fmt.Errorf("reading %q: unknown word", line)
	}
}

// cycle turns the name outwards, holds it, and turns it back.
func (s *swapper) cycle(hold time.Duration) error {
	if err := s.turn(); err != nil {
		return err
	}
	pause(hold)
	return s.turn()
}

// turn changes where the name leads, once.
func (s *swapper) turn() error {
	used, spare, aside := s.path(nameUsed), s.path(nameSpare), s.path(nameAside)
	var err error
	switch s.method {
	case Exchange:
		err = unix.Renameat2(unix.AT_FDCWD, used, unix.AT_FDCWD, spare, unix.RENAME_EXCHANGE)
	case Rename:
		first, second := [2]string{used, aside}, [2]string{spare, used}
		if s.turned {
			first, second = [2]string{used, spare}, [2]string{aside, used}
		}
		if err = os.Rename(first[0], first[1]); err == nil {
			err = s.rename(second[0], second[1])
		}
	case Retarget:
		target := s.outside
		if s.turned {
			target = nameReal
		}
		s.freshNo++
		fresh := s.path(fmt.Sprintf("link-%d", s.freshNo))
		if err = os.Symlink(target, fresh); err == nil {
			err = os.Rename(fresh, used)
		}
	}
	if err != nil {
		return fmt.Errorf("swapping by %s: %w", s.method, err)
	}
	s.turned = !s.turned
	return nil
}

// rename moves from to the swapped name. While that name was missing, a server that makes
// whole paths may have made it: such a folder is moved out of the way, where the stage's
// reset removes it.
func (s *swapper) rename(from, to string) error {
	for range 100 {
		err := os.Rename(from, to)
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) &&
			!errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
		s.freshNo++
		if err := os.Rename(to, s.path(fmt.Sprintf("stray-%d", s.freshNo))); err != nil {
			return err
		}
	}
	return fmt.Errorf("moving to %q: it comes back again and again", to)
}

func (s *swapper) path(name string) string { return filepath.Join(s.root, name) }

// pause waits: asleep while the wait is long against the timer's slack (50 µs), and busy
// for the rest, since the window between a server's check and its use is that small.
func pause(d time.Duration) {
	start := time.Now()
	if d > 300*time.Microsecond {
		time.Sleep(d - 200*time.Microsecond)
	}
	for time.Since(start) < d {
	}
}
