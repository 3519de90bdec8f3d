package packages

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// readLimit bounds what is read of a stage: a lock of a few thousand packages has a few MiB.
const readLimit = 64 << 20

// readInside reads a file of a folder that an install has written. Install scripts write
// there too: a link that leads out, a pipe that never ends or a device is an error.
func readInside(folder, name string) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > readLimit {
		return nil, fmt.Errorf("%q is no file, or too large", name)
	}
	return io.ReadAll(io.LimitReader(f, readLimit))
}
