package main

import (
	"fmt"
	"log/syslog"
)

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
