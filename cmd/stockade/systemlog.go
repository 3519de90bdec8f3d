package main

import (
	"fmt"
	"log/syslog"
	"os"
	"slices"
)

// systemLogThere tells whether there is a socket of the system's log, as log/syslog looks for it.
func systemLogThere() bool {
	return slices.ContainsFunc([]string{"/dev/log", "/var/run/syslog", "/var/run/log"}, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().Type() == os.ModeSocket
	})
}

// toSystemLog writes one line to the system's log (syslog(3), by the socket /dev/log), and
// says whether it was taken.
func toSystemLog(line string) error {
	w, err := syslog.New(syslog.LOG_AUTHPRIV|syslog.LOG_NOTICE, "stockade")
	if err != nil {
		return fmt.Errorf("connecting to the system's log: %w", err)
	}
	_, err = w.Write([]byte(escape(line)))
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing to the system's log: %w", err)
	}
	return nil
}
