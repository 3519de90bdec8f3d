package sandbox

// Kind is what a path turned out to be, or has to be.
type Kind uint8

const (
	// KindAny is no demand in a grant, and never the kind of an opened object.
	KindAny Kind = iota
	// KindFolder is a directory.
	KindFolder
	// KindFile is a regular file.
	KindFile
	// KindDevice is a character or block device node.
	KindDevice
	// KindFifo is a named pipe.
	KindFifo
	// KindSocket is a socket file.
	KindSocket
)

// String returns the word that messages print.
func (k Kind) String() string {
	switch k {
	case KindAny:
		return "anything"
	case KindFolder:
		return "folder"
	case KindFile:
		return "file"
	case KindDevice:
		return "device"
	case KindFifo:
		return "fifo"
	case KindSocket:
		return "socket"
	}
	return "unknown"
}
