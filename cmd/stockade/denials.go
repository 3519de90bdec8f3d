package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"stockade/sandbox/egress"
)

// The denial log has one JSON object a line. It holds what servers asked for and were
// refused, and nothing of what they may do.
const (
	logFile    = "denials.jsonl"
	oldLogFile = "denials.1.jsonl"
	// maxLog is how large the file grows before it takes the place of the old one. Servers
	// decide how often they are refused; a disk is not theirs to fill.
	maxLog = 4 << 20
	// maxField bounds one text of an entry. Names and socket paths are shorter.
	maxField = 512
)

// logFolder is where the log lies, below the state folder: out of every jail's reach.
func logFolder(state string) string { return filepath.Join(state, "stockade", "log") }

// denialEntry is one line of the log; its form is documented in the help of "stockade log".
type denialEntry struct {
	Time    time.Time `json:"time"`
	Profile string    `json:"profile"`
	Program string    `json:"program"`
	PID     int       `json:"pid"`
	Call    string    `json:"call"`
	Asked   string    `json:"asked"`
	Rule    string    `json:"rule"`
	Hint    string    `json:"hint"`
	// Of what the kernel refuses: what kind of thing it is, what was about to be done, the
	// profile's file and the key that grants it.
	Kind      string `json:"kind,omitempty"`
	Operation string `json:"operation,omitempty"`
	File      string `json:"file,omitempty"`
	Key       string `json:"key,omitempty"`
	// Unseen counts calls of this run whose outcome could not be foreseen, on a line of its own.
	Unseen int `json:"unseen,omitempty"`
	// Unlogged counts refusals of this run before this one that came too fast for a line
	// of their own. A line without a call is no refusal: it only tells of them.
	Unlogged int `json:"unlogged,omitempty"`
}

// newMark makes the line that tells of refusals without a line after which none came.
func newMark(at time.Time, profile string, unlogged int) denialEntry {
	return denialEntry{Time: at, Profile: bounded(profile), Unlogged: unlogged}
}

// newEntry makes a line from a refusal. Texts are bounded, and bytes that JSON cannot hold
// are written as escapes.
func newEntry(d egress.Denial, profile string) denialEntry {
	if d.Profile != "" {
		profile = d.Profile
	}
	if d.Time.IsZero() {
		d.Time = time.Now()
	}
	return denialEntry{
		Time: d.Time, Profile: profile, Program: d.Program, PID: d.PID, Call: d.Call, Asked: d.Asked, Rule: d.Rule, Hint: d.Hint,
	}.bounded()
}

// bounded bounds every text that a server has a part in.
func (e denialEntry) bounded() denialEntry {
	e.Time = e.Time.UTC().Truncate(time.Millisecond)
	for _, text := range []*string{&e.Profile, &e.Program, &e.Call, &e.Asked, &e.Rule, &e.Hint, &e.File} {
		*text = bounded(*text)
	}
	return e
}

func bounded(s string) string {
	if !utf8.ValidString(s) {
		s = escape(s)
	}
	if len(s) > maxField {
		s = strings.ToValidUTF8(s[:maxField], "") + "..."
	}
	return s
}

// denialLog writes a run's refusals: one JSON line each to the log, and lines for a person
// to standard error, as many as one can read. It is safe for concurrent use.
type denialLog struct {
	profile string
	std     stdio
	folder  string
	// audit takes each line of the log as well, for the machine's own; nil: no policy asks.
	audit func(line string) error
	// hide takes the values of secrets out of texts; nil: there are none. A server asks in its
	// own words, and may use theirs.
	hide *strings.Replacer

	mu       sync.Mutex
	told     tellLimit
	once     map[string]struct{} // what the kernel refused and a line told of
	unseen   int
	logged   writeLimit
	lost     int         // of those that were not told, how many are not in the log either
	flush    *time.Timer // tells how many lines were left out when no refusal follows
	deaf     bool        // the log cannot be written; said once
	finished bool
}

// openDenialLog makes the log of one run. It touches nothing until the first refusal.
// [denialLog.close] at the end tells what was left out.
func openDenialLog(state, profile string, std stdio) *denialLog {
	return &denialLog{profile: profile, std: std, folder: logFolder(state)}
}

// deny reports one refusal.
func (l *denialLog) deny(d egress.Denial) {
	e := l.hidden(newEntry(d, l.profile))
	l.mu.Lock()
	defer l.mu.Unlock()
	written := l.log(e)
	l.admit(e, e.Call+" "+e.Asked, written)
}

// admit tells of an entry, or counts it, and reports which.
func (l *denialLog) admit(e denialEntry, what string, written bool) (told bool) {
	left, tell := l.told.admit(e.Time, what)
	l.more(left)
	switch {
	case tell:
		l.std.say(sayNote, denialText(e))
		return true
	case !written:
		l.lost++
	}
	l.tellLater()
	return false
}

// observed reports one refusal of the kernel: a line for each thing in a run, and none for
// what servers do without.
func (l *denialLog) observed(e denialEntry) {
	e = l.hidden(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	written := l.log(e)
	if quietly(e) {
		return
	}
	what := e.Operation + " " + e.Asked
	if _, known := l.once[what]; known || len(l.once) >= mostOnce {
		l.told.left++
		if !written {
			l.lost++
		}
		l.tellLater()
		return
	}
	if l.admit(e, what, written) {
		if l.once == nil {
			l.once = map[string]struct{}{}
		}
		l.once[what] = struct{}{}
	}
}

// mostOnce bounds what is remembered of a server's refusals.
const mostOnce = 2048

// overlooked counts a call whose outcome could not be foreseen.
func (l *denialLog) overlooked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unseen++
}

// tellLater has the count of what was left out told, also when no refusal follows.
func (l *denialLog) tellLater() {
	if l.flush == nil && !l.finished {
		l.flush = time.AfterFunc(tellWindow, l.flushed)
	}
}

// log appends an entry and tells whether it is in the log.
func (l *denialLog) log(e denialEntry) bool {
	unlogged, write := l.logged.admit(e.Time)
	if !write {
		l.tellLater()
		return false
	}
	e.Unlogged = unlogged
	return l.append(e)
}

// append says once when it fails: a server goes on without its log.
func (l *denialLog) append(e denialEntry) bool {
	err := appendEntry(l.folder, e)
	if l.audit != nil && e.Call != "" {
		if auditErr := l.audit(fmt.Sprintf("denial uid=%d profile=%q %s", os.Getuid(), e.Profile, denialText(e))); err == nil {
			err = auditErr
		}
	}
	if err != nil && !l.deaf {
		l.deaf = true
		l.std.say(sayWarning, "refusals are told here alone: "+err.Error())
	}
	return err == nil
}

// more tells how many refusals got no line here, and how many of them have one in the log.
func (l *denialLog) more(n int) {
	if n == 0 {
		return
	}
	text := counted(n, "more refusal")
	switch logged := n - l.lost; {
	case l.lost == 0:
		text += `; "stockade log" lists them`
	case logged > 0:
		text += fmt.Sprintf(`; "stockade log" lists %d of them`, logged)
	default:
		text += "; the log has no line for them"
	}
	l.lost = 0
	l.std.say(sayNote, text)
}

// rest tells here and in the log of what was left out and no later line told of.
func (l *denialLog) rest() {
	if at, unlogged := l.logged.rest(); unlogged > 0 {
		l.append(newMark(at, l.profile, unlogged))
	}
	l.more(l.told.rest())
}

// flushed ends a minute in which lines were left out and after which none came.
func (l *denialLog) flushed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush = nil
	if !l.finished {
		l.rest()
	}
}

// close tells what was left out. Refusals after it are still logged.
func (l *denialLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished = true
	if l.flush != nil {
		l.flush.Stop()
		l.flush = nil
	}
	l.rest()
	if l.unseen > 0 {
		l.append(denialEntry{Time: time.Now(), Profile: l.profile, Unseen: l.unseen}.bounded())
	}
}

// denialText is one refusal as a sentence. The call is in it unless what was asked for says
// it already: "unix /run/x.sock", "listen tcp 0.0.0.0:80", "name evil.example".
func denialText(e denialEntry) string {
	text := "refused: "
	if e.Operation != "" {
		text += e.Operation + " " + e.Asked + " (" + e.Call + ")"
	} else if e.Call != "dns" && !strings.HasPrefix(e.Asked, e.Call+" ") {
		text += e.Call + " " + e.Asked
	} else {
		text += e.Asked
	}
	if e.Program != "" {
		text = e.Program + ": " + text
	}
	if e.Rule != "" {
		text += ": " + e.Rule
	}
	if _, _, answered := answeredName(e.Call, e.Asked); answered {
		text += ", and " + neverSpecial
	}
	if e.Hint != "" {
		text += "; to allow it, " + e.Hint
	}
	return text
}

// appendEntry writes one line with one call, so that lines of several runs do not mix
// (O_APPEND). The file is opened for each: another run may have put it aside meanwhile.
func appendEntry(folder string, e denialEntry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("writing a line of the log: %w", err)
	}
	dir, err := openLogFolder(folder)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := openLog(dir, folder, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT)
	if err != nil {
		return err
	}
	defer func() { unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("asking for the size of the log in %q: %w", folder, err)
	}
	if st.Size > maxLog {
		next, err := turnOver(dir, folder)
		if err != nil {
			return err
		}
		unix.Close(fd)
		fd = next
	}
	n, err := unix.Write(fd, append(line, '\n'))
	if err == nil && n <= len(line) {
		err = errors.New("the disk is full")
	}
	if err != nil {
		return fmt.Errorf("writing the log in %q: %w", folder, err)
	}
	return nil
}

// openLogFolder makes the folder and opens it without following a link in its own place. A
// folder that others can write to would let them choose what is written to.
func openLogFolder(folder string) (int, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return -1, fmt.Errorf("making the folder of the log: %w", err)
	}
	dir, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening the folder of the log %q: %w", folder, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		unix.Close(dir)
		return -1, fmt.Errorf("looking at the folder of the log %q: %w", folder, err)
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		unix.Close(dir)
		return -1, fmt.Errorf("opening the folder of the log %q: others can write to it", folder)
	}
	return dir, nil
}

// openLog opens the log below its folder: a regular file of this user with one name, never
// through a link, and never waiting for a fifo.
func openLog(dir int, folder string, flags int) (int, error) {
	return openLogNamed(dir, folder, logFile, flags)
}

func openLogNamed(dir int, folder, name string, flags int) (int, error) {
	fd, err := unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, &fs.PathError{Op: "opening the log", Path: filepath.Join(folder, name), Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("looking at the log in %q: %w", folder, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Nlink != 1 {
		unix.Close(fd)
		return -1, fmt.Errorf("opening the log %q: it is not a file of its own", filepath.Join(folder, name))
	}
	return fd, nil
}

// turnOver puts a full log in the place of the old one and returns a new one. Of several
// runs that find it full, the lock on the folder lets one do it: the others find a new file.
func turnOver(dir int, folder string) (int, error) {
	if err := unix.Flock(dir, unix.LOCK_EX); err != nil {
		return -1, fmt.Errorf("locking the folder of the log %q: %w", folder, err)
	}
	defer func() { _ = unix.Flock(dir, unix.LOCK_UN) }() // closing the folder lets go as well
	var st unix.Stat_t
	err := unix.Fstatat(dir, logFile, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Size > maxLog {
		err = unix.Renameat(dir, logFile, dir, oldLogFile)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return -1, fmt.Errorf("putting the full log in %q aside: %w", folder, err)
	}
	return openLog(dir, folder, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT)
}
