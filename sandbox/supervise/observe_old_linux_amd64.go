package supervise

import (
	"golang.org/x/sys/unix"

	"stockade/sandbox/forecast"
)

// intendOld reads the calls without a folder's descriptor, which arm64 does not have.
func intendOld(c *call) (look intent, known bool, err error) {
	switch c.nr {
	case unix.SYS_OPEN:
		look, err = intendOpen(c, "open", argument{noFolder, 0}, opening{flags: c.args[1]})
	case unix.SYS_CREAT:
		look, err = intendOpen(c, "creat", argument{noFolder, 0}, opening{flags: unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC})
	case unix.SYS_MKDIR:
		look, err = intendMake(c, "mkdir", argument{noFolder, 0}, forecast.UseMakeFolder)
	case unix.SYS_MKNOD:
		look, err = intendMake(c, "mknod", argument{noFolder, 0}, nodeUse(c.args[1]))
	case unix.SYS_SYMLINK:
		look, err = intendMake(c, "symlink", argument{noFolder, 1}, forecast.UseMakeLink)
	case unix.SYS_UNLINK:
		look, err = intendRemove(c, "unlink", argument{noFolder, 0}, forecast.UseRemoveFile)
	case unix.SYS_RMDIR:
		look, err = intendRemove(c, "rmdir", argument{noFolder, 0}, forecast.UseRemoveFolder)
	case unix.SYS_RENAME:
		look, err = intendMove(c, "rename", argument{noFolder, 0}, argument{noFolder, 1}, 0)
	case unix.SYS_LINK:
		look, err = intendLink(c, "link", argument{noFolder, 0}, argument{noFolder, 1}, 0)
	default:
		return nil, false, nil
	}
	return look, true, err
}
