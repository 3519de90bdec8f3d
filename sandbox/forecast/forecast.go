// Package forecast tells which uses of files the Landlock domain of a jail will refuse, for
// lines that explain a refusal. It enforces nothing, and whatever changes between its look
// and the kernel's makes it wrong: nothing may be granted or refused by what it says.
package forecast

// Use is what a call does with a file or folder: a set of what Landlock has a right for.
type Use uint16

const (
	// UseRead reads a file.
	UseRead Use = 1 << iota
	// UseList lists a folder.
	UseList
	// UseWrite changes the content of a file.
	UseWrite
	// UseTruncate cuts a file short.
	UseTruncate
	// UseExecute executes a file.
	UseExecute
	// UseMakeFile, and so on to UseMakeDevice, make something in a folder.
	UseMakeFile
	UseMakeFolder
	UseMakeLink
	UseMakeFifo
	UseMakeSocket
	UseMakeDevice
	// UseRemoveFile and UseRemoveFolder take something out of a folder.
	UseRemoveFile
	UseRemoveFolder
	// UseRefer moves or links between two folders.
	UseRefer
)

// Rule is one rule of a domain: what it grants on an object and, for a folder, on all below.
type Rule struct {
	Object Object
	Path   string // real path at the time of the rule
	Kind   Kind
	Grants Use
}

// Kind says whether a rule holds for what lies below its object.
type Kind uint8

const (
	// OnFile is a rule on one file, device or fifo.
	OnFile Kind = iota
	// OnFolder is a rule on a folder and everything below.
	OnFolder
)

// Object is a file or folder, whatever its path.
type Object struct{ Dev, Ino uint64 }

// Domain holds the rules of a jail. It decides as Landlock does: a use is allowed when the
// rules on the object and on all folders above it grant it together
// (Documentation/userspace-api/landlock.rst, "Bind mounts and OverlayFS" and "Inheritance").
// It may be used by several goroutines.
type Domain struct {
	handled Use
	objects map[Object]Use
	// folders are the same rules by the real paths of folders. It finds most of what is
	// granted with no look at the folders above.
	folders map[string]Use
	files   map[string]struct{} // real paths of what is granted and no folder
}

// New makes a domain that refuses what is handled and no rule grants.
func New(handled Use, rules []Rule) *Domain {
	d := &Domain{handled: handled, objects: map[Object]Use{}, folders: map[string]Use{}, files: map[string]struct{}{}}
	for _, r := range rules {
		d.objects[r.Object] |= r.Grants
		if r.Kind == OnFolder {
			d.folders[r.Path] |= r.Grants
		} else {
			d.files[r.Path] = struct{}{}
		}
	}
	return d
}
