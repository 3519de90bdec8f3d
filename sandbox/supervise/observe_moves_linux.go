package supervise

import (
	"golang.org/x/sys/unix"

	"stockade/sandbox/forecast"
)

// removal and making are what a move needs of the folder that something leaves, and of the
// one that it comes to.
func (t *thing) removal() forecast.Use {
	if t.is(unix.S_IFDIR) {
		return forecast.UseRemoveFolder
	}
	return forecast.UseRemoveFile
}

func (t *thing) making() forecast.Use {
	switch t.mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return forecast.UseMakeFolder
	case unix.S_IFLNK:
		return forecast.UseMakeLink
	}
	return nodeUse(uint64(t.mode))
}

func intendMove(c *call, name string, from, to argument, flags int) (intent, error) {
	old, fresh, err := c.atBoth(from, to)
	if err != nil {
		return nil, err
	}
	return func(v *viewer) (*Refusal, error) {
		source, moved, base, err := v.present(old)
		if err != nil {
			return nil, err
		}
		target, there, newBase, err := v.present(fresh)
		if err != nil && err != unix.ENOENT || target == nil { //nolint:errorlint // of a system call
			return nil, err
		}
		t := transfer{
			source: source, moved: moved, target: target, leaves: moved.removal(), comes: moved.making(),
			out: Refusal{Call: name, Operation: Moving, Path: source.holding(base), Asked: old.path},
			in:  Refusal{Call: name, Operation: Creating, Path: target.holding(newBase), Asked: fresh.path},
		}
		switch exchanged := flags&unix.RENAME_EXCHANGE != 0; {
		case err == nil && flags&unix.RENAME_NOREPLACE != 0:
			return nil, unix.EEXIST
		case err != nil && exchanged:
			return nil, err
		case exchanged:
			t.leaves |= there.making()
			t.comes |= there.removal()
		case err == nil && there.same(moved):
			return nil, nil //nolint:nilnil // nothing to do, says the kernel
		case err == nil:
			t.comes |= there.removal()
		}
		return t.look(v)
	}, nil
}

func intendLink(c *call, name string, from, to argument, flags int) (intent, error) {
	old, fresh, err := c.atBoth(from, to)
	if err != nil {
		return nil, err
	}
	return func(v *viewer) (*Refusal, error) {
		last := keepLast
		if flags&unix.AT_SYMLINK_FOLLOW != 0 {
			last = followLast
		}
		linked, err := v.open(old, last)
		if err != nil {
			return nil, err
		}
		source, err := v.open(where{unix.AT_FDCWD, parentOf(linked.real)}, keepLast)
		if err != nil {
			return nil, err
		}
		target, base, err := v.absent(fresh)
		if err != nil {
			return nil, err
		}
		return transfer{
			source: source, moved: linked, target: target, comes: linked.making(),
			out: Refusal{Call: name, Operation: Linking, Path: linked.real, Asked: old.path},
			in:  Refusal{Call: name, Operation: Creating, Path: target.holding(base), Asked: fresh.path},
		}.look(v)
	}, nil
}

// transfer is a move or a link. Landlock asks for what is done in both folders, for the
// right to refer when they are two, and that a file gains no right by it (EXDEV; Linux 6.18,
// current_check_refer_path in security/landlock/fs.c).
type transfer struct {
	source, moved, target *thing
	leaves, comes         forecast.Use
	out, in               Refusal
}

func (t transfer) look(v *viewer) (*Refusal, error) {
	const write = unix.W_OK | unix.X_OK
	if t.source.same(t.target) {
		return v.missing(t.target, t.leaves|t.comes, write, t.in)
	}
	leaving := uint32(unix.X_OK)
	if t.leaves != 0 {
		leaving = write
	}
	for _, side := range []struct {
		folder *thing
		use    forecast.Use
		mode   uint32
		says   Refusal
	}{
		{t.source, t.leaves | forecast.UseRefer, leaving, t.out},
		{t.target, t.comes | forecast.UseRefer, write, t.in},
	} {
		if r, err := v.missing(side.folder, side.use, side.mode, side.says); r != nil || err != nil {
			return r, err
		}
	}
	return t.wider(v)
}

// onFile are the uses that mean something on a file and that a jail's grants differ in.
const onFile = forecast.UseRead | forecast.UseWrite | forecast.UseTruncate | forecast.UseExecute

// wider looks whether what is moved would gain a right.
func (t transfer) wider(v *viewer) (*Refusal, error) {
	had, err := v.domain.Grants(t.moved.fd, t.moved.real)
	if err != nil {
		return nil, err
	}
	gets, err := v.domain.Grants(t.target.fd, t.target.real)
	if err != nil {
		return nil, err
	}
	gained := gets &^ had
	if !t.moved.is(unix.S_IFDIR) {
		gained &= onFile
	}
	if gained == 0 {
		return nil, nil //nolint:nilnil // nothing is refused
	}
	r := t.in
	r.Operation, r.Grant, r.Uses, r.Wider = t.out.Operation, t.source.real, gained, true
	r.Asked = ""
	return &r, nil
}
