package program

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// Bounds on what is believed of an ELF file. Each is far above what linkers write; a file
// beyond one is refused, so that a crafted file costs neither time nor memory.
const (
	elfHeadSize      = 1 << 10  // read at once: header, program headers and loader name
	elfMaxHeaders    = 64 << 10 // all program headers
	elfMaxDynamic    = 64 << 10 // the dynamic section
	elfMaxString     = 4 << 10  // one name or search path; the kernel's bound for the loader's
	elfMaxStringsRun = 16 << 10 // names that lie this close together are read at once
)

// ELF numbers, from the System V ABI and elf(5).
const (
	elfClass32     = 1
	elfClass64     = 2
	elfDataLittle  = 1
	elfDataBig     = 2
	elfTypeExec    = 2
	elfTypeDyn     = 3
	elfSegLoad     = 1
	elfSegDynamic  = 2
	elfSegInterp   = 3
	elfTagNeeded   = 1
	elfTagStrTab   = 5
	elfTagStrSize  = 10
	elfTagSoName   = 14
	elfTagRPath    = 15
	elfTagRunPath  = 29
	elfTagFlags1   = 0x6ffffffb
	elfFlagNoDeflt = 0x800      // DF_1_NODEFLIB
	elfFlagPIE     = 0x08000000 // DF_1_PIE, set by linkers since binutils 2.26
)

var errNotELF = errors.New("not an ELF file")

// machine is what has to agree between a program and its libraries.
type machine struct {
	number uint16 // e_machine
	class  byte   // 32 or 64 bits: elfClass32, elfClass64
	data   byte   // byte order: elfDataLittle, elfDataBig
}

// thisMachine is what the running kernel starts without help; false where the project
// knows no number for the architecture.
func thisMachine() (machine, bool) {
	switch runtime.GOARCH {
	case "amd64":
		return machine{62, elfClass64, elfDataLittle}, true
	case "arm64":
		return machine{183, elfClass64, elfDataLittle}, true
	case "riscv64":
		return machine{243, elfClass64, elfDataLittle}, true
	case "ppc64le":
		return machine{21, elfClass64, elfDataLittle}, true
	case "s390x":
		return machine{22, elfClass64, elfDataBig}, true
	}
	return machine{}, false
}

func (m machine) String() string {
	bits := 64
	if m.class == elfClass32 {
		bits = 32
	}
	name := fmt.Sprintf("machine %d", m.number)
	switch m.number {
	case 3:
		name = "x86"
	case 62:
		name = "x86-64"
	case 40:
		name = "arm"
	case 183:
		name = "arm64"
	}
	return fmt.Sprintf("%s, %d bits", name, bits)
}

// image is what the start of an ELF program or library depends on.
type image struct {
	machine machine
	// loader is the PT_INTERP path; "" for static programs and most libraries.
	loader string
	needed []string // DT_NEEDED, in order
	soName string
	// rPath and runPath are colon-separated, not expanded.
	rPath, runPath string
	// noDefault says that neither the cache nor the default folders are searched.
	noDefault bool
	// starts says that the file is made to be started: it is no shared object, or a
	// position-independent program, which glibc refuses to map as a library.
	starts bool
}

// library says whether a file can be nothing but a library. libc and loaders that can be
// started too are not told apart from programs here.
func (i image) library() bool { return !i.starts && i.loader == "" }

// isELF says whether the kernel takes a file with this beginning for an ELF file.
func isELF(head []byte) bool { return len(head) >= 4 && string(head[:4]) == "\x7fELF" }

// elfReader reads the parts of one file. head is its beginning, so that the headers of an
// ordinary file cost no read of their own.
type elfReader struct {
	r     io.ReaderAt
	head  []byte
	order binary.ByteOrder
	wide  bool // 64-bit fields
}

type segment struct {
	kind                         uint32
	offset, address, size, sizeM uint64
}

// readELF reads what a loader needs to know, in at most five short reads. It never
// panics on a damaged file. head may be any length, also nil.
func readELF(r io.ReaderAt, head []byte) (image, error) {
	e := elfReader{r: r, head: head}
	header, err := e.bytes(0, 64)
	if err != nil {
		return image{}, err
	}
	if !isELF(header) {
		return image{}, errNotELF
	}
	found := image{machine: machine{class: header[4], data: header[5]}}
	switch found.machine.class {
	case elfClass32:
	case elfClass64:
		e.wide = true
	default:
		return image{}, fmt.Errorf("unknown ELF class %d", header[4])
	}
	switch found.machine.data {
	case elfDataLittle:
		e.order = binary.LittleEndian
	case elfDataBig:
		e.order = binary.BigEndian
	default:
		return image{}, fmt.Errorf("unknown ELF byte order %d", header[5])
	}
	kind := e.order.Uint16(header[16:])
	if kind != elfTypeExec && kind != elfTypeDyn {
		return image{}, fmt.Errorf("ELF type %d is no program or library", kind)
	}
	found.starts = kind == elfTypeExec
	found.machine.number = e.order.Uint16(header[18:])
	segments, err := e.segments(header)
	if err != nil {
		return image{}, err
	}
	for _, s := range segments {
		switch s.kind {
		case elfSegInterp:
			if found.loader, err = e.loader(s); err != nil {
				return image{}, err
			}
		case elfSegDynamic:
			if err = e.dynamic(&found, s, segments); err != nil {
				return image{}, err
			}
		}
	}
	return found, nil
}

// bytes returns part of the file, from head when it lies there.
func (e *elfReader) bytes(offset, size uint64) ([]byte, error) {
	if end := offset + size; end >= offset && end <= uint64(len(e.head)) {
		return e.head[offset:end], nil
	}
	if offset > 1<<62 {
		return nil, io.ErrUnexpectedEOF
	}
	buffer := make([]byte, size)
	n, err := e.r.ReadAt(buffer, int64(offset))
	if n < len(buffer) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return buffer, nil
}

func (e *elfReader) word(b []byte) uint64 {
	if e.wide {
		return e.order.Uint64(b)
	}
	return uint64(e.order.Uint32(b))
}

func (e *elfReader) segments(header []byte) ([]segment, error) {
	var offset, entry, count uint64
	if e.wide {
		offset = e.order.Uint64(header[32:])
		entry, count = uint64(e.order.Uint16(header[54:])), uint64(e.order.Uint16(header[56:]))
	} else {
		offset = uint64(e.order.Uint32(header[28:]))
		entry, count = uint64(e.order.Uint16(header[42:])), uint64(e.order.Uint16(header[44:]))
	}
	least := uint64(32)
	if e.wide {
		least = 56
	}
	// The kernel refuses other entry sizes, and tables above 64 KiB (load_elf_phdrs).
	if count == 0 || entry != least || entry*count > elfMaxHeaders {
		return nil, fmt.Errorf("%d program headers of %d bytes cannot be read", count, entry)
	}
	table, err := e.bytes(offset, entry*count)
	if err != nil {
		return nil, err
	}
	segments := make([]segment, 0, count)
	for ; uint64(len(table)) >= entry; table = table[entry:] {
		s := segment{kind: e.order.Uint32(table)}
		switch {
		case s.kind != elfSegLoad && s.kind != elfSegDynamic && s.kind != elfSegInterp:
			continue
		case e.wide:
			s.offset, s.address = e.order.Uint64(table[8:]), e.order.Uint64(table[16:])
			s.size, s.sizeM = e.order.Uint64(table[32:]), e.order.Uint64(table[40:])
		default:
			s.offset, s.address = uint64(e.order.Uint32(table[4:])), uint64(e.order.Uint32(table[8:]))
			s.size, s.sizeM = uint64(e.order.Uint32(table[16:])), uint64(e.order.Uint32(table[20:]))
		}
		segments = append(segments, s)
	}
	return segments, nil
}

// loader reads PT_INTERP with the kernel's own conditions (load_elf_binary).
func (e *elfReader) loader(s segment) (string, error) {
	if s.size < 2 || s.size > elfMaxString {
		return "", errors.New("the name of its loader has an impossible length")
	}
	name, err := e.bytes(s.offset, s.size)
	if err != nil {
		return "", err
	}
	if name[len(name)-1] != 0 {
		return "", errors.New("the name of its loader has no end")
	}
	return cString(name), nil
}

// dynamic reads the dynamic section and the strings that it refers to.
func (e *elfReader) dynamic(found *image, s segment, segments []segment) error {
	if s.size > elfMaxDynamic {
		return errors.New("its dynamic section is too large")
	}
	table, err := e.bytes(s.offset, s.size)
	if err != nil {
		return err
	}
	half := 4
	if e.wide {
		half = 8
	}
	var strings, size uint64
	var needed []uint64
	var soName, rPath, runPath uint64
	for ; len(table) >= 2*half && e.word(table) != 0; table = table[2*half:] { // DT_NULL ends it
		value := e.word(table[half:])
		switch e.word(table) {
		case elfTagNeeded:
			needed = append(needed, value)
		case elfTagStrTab:
			strings = value
		case elfTagStrSize:
			size = value
		case elfTagSoName:
			soName = value
		case elfTagRPath:
			rPath = value
		case elfTagRunPath:
			runPath = value
		case elfTagFlags1:
			found.noDefault = value&elfFlagNoDeflt != 0
			found.starts = found.starts || value&elfFlagPIE != 0
		}
	}
	if len(needed) == 0 && soName == 0 && rPath == 0 && runPath == 0 {
		return nil
	}
	base, ok := fileOffset(segments, strings)
	if !ok {
		return errors.New("its string table lies outside of the file")
	}
	names := stringTable{reader: e, base: base, size: size}
	names.prefetch(append([]uint64{soName, rPath, runPath}, needed...))
	// Index 0 is the empty string in every table, so that an absent tag reads as "".
	found.needed = make([]string, len(needed))
	for i, at := range needed {
		if found.needed[i], err = names.at(at); err != nil {
			return err
		}
	}
	if found.soName, err = names.at(soName); err != nil {
		return err
	}
	if found.rPath, err = names.at(rPath); err != nil {
		return err
	}
	found.runPath, err = names.at(runPath)
	return err
}

// fileOffset turns an address of the loaded program into a place in its file.
func fileOffset(segments []segment, address uint64) (uint64, bool) {
	for _, s := range segments {
		if s.kind == elfSegLoad && address >= s.address && address-s.address < s.size {
			return s.offset + (address - s.address), true
		}
	}
	return 0, false
}

// stringTable reads names from a table that may be megabytes long (node exports tens of
// thousands of symbols), of which the loader wants a dozen.
type stringTable struct {
	reader *elfReader
	base   uint64
	size   uint64
	run    []byte
	runAt  uint64
}

// prefetch reads the stretch that holds all the given names, if it is short: linkers put
// library names beside each other.
func (t *stringTable) prefetch(offsets []uint64) {
	low, high := ^uint64(0), uint64(0)
	for _, at := range offsets {
		if at != 0 {
			low, high = min(low, at), max(high, at)
		}
	}
	if low > high || high >= t.size || high-low > elfMaxStringsRun {
		return
	}
	// The last name is of unknown length; most are shorter than this.
	length := min(high-low+256, t.size-low)
	if run, err := t.reader.bytes(t.base+low, length); err == nil {
		t.run, t.runAt = run, low
	}
}

// at reads one name.
func (t *stringTable) at(offset uint64) (string, error) {
	if offset == 0 {
		return "", nil
	}
	if offset >= t.size {
		return "", errors.New("a name lies outside of its string table")
	}
	if offset >= t.runAt && offset-t.runAt < uint64(len(t.run)) {
		if name := t.run[offset-t.runAt:]; bytes.IndexByte(name, 0) >= 0 {
			return cString(name), nil
		}
	}
	length := min(t.size-offset, elfMaxString)
	name, err := t.reader.bytes(t.base+offset, length)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(name, 0) < 0 {
		return "", errors.New("a name in its string table has no end")
	}
	return cString(name), nil
}
