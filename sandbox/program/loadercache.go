package program

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sort"
)

// loaderCacheLimit bounds /etc/ld.so.cache; those of large installations have 300 KB.
const loaderCacheLimit = 8 << 20

const (
	cacheMagic      = "glibc-ld.so.cache1.1"
	oldCacheMagic   = "ld.so-1.7.0"
	cacheHeaderSize = 48
	cacheEntrySize  = 24
)

var errNoLoaderCache = errors.New("not a loader cache of the format 1.1")

// loaderCache is ldconfig(8)'s table of library names and paths, in the format that glibc
// has read since 2.2 and has written alone since 2.32 (sysdeps/generic/dl-cache.h).
type loaderCache struct {
	data    []byte // the header and all behind it; offsets count from here
	entries []byte
	order   binary.ByteOrder
}

// cachedLibrary is one entry.
type cachedLibrary struct {
	path string
	// variant says that the entry is for processors with certain abilities only.
	variant bool
}

// parseLoaderCache checks the parts of a cache that lookups depend on. It keeps data.
func parseLoaderCache(data []byte, m machine) (loaderCache, error) {
	order := binary.ByteOrder(binary.LittleEndian)
	if m.data == elfDataBig {
		order = binary.BigEndian
	}
	if bytes.HasPrefix(data, []byte(oldCacheMagic)) {
		// Old glibc puts the new table behind one of the oldest format: a magic of 11
		// bytes, the count at 12, entries of 12 bytes, the whole rounded up to 8.
		if len(data) < 16 {
			return loaderCache{}, errNoLoaderCache
		}
		skip := 16 + 12*uint64(order.Uint32(data[12:]))
		skip = (skip + 7) &^ 7
		if skip > uint64(len(data)) {
			return loaderCache{}, errNoLoaderCache
		}
		data = data[skip:]
	}
	if len(data) < cacheHeaderSize || string(data[:len(cacheMagic)]) != cacheMagic {
		return loaderCache{}, errNoLoaderCache
	}
	size := uint64(order.Uint32(data[20:])) * cacheEntrySize
	entries := data[cacheHeaderSize:]
	if size > uint64(len(entries)) {
		return loaderCache{}, errNoLoaderCache
	}
	entries = entries[:size]
	return loaderCache{data: data, entries: entries, order: order}, nil
}

// find returns the entries of a library name whose flags say that they are for programs
// of the machine, best first as the loader would try them.
//
// The entries are sorted from high to low by compareLibraries, which makes this a binary
// search, as in the loader: a cache in another order finds nothing here and there.
func (c loaderCache) find(name string, m machine) []cachedLibrary {
	want, known := cacheFlags(m)
	if !known {
		return nil
	}
	count := len(c.entries) / cacheEntrySize
	key := []byte(name)
	first := sort.Search(count, func(i int) bool {
		return compareLibraries(c.text(c.entry(i)[4:]), key) <= 0
	})
	var found []cachedLibrary
	for i := first; i < count; i++ {
		e := c.entry(i)
		if !bytes.Equal(c.text(e[4:]), key) {
			break
		}
		if c.order.Uint32(e) != want {
			continue
		}
		path := c.text(e[8:])
		if len(path) == 0 || path[0] != '/' {
			continue
		}
		found = append(found, cachedLibrary{path: string(path), variant: c.order.Uint64(e[16:]) != 0})
	}
	return found
}

func (c loaderCache) entry(i int) []byte {
	return c.entries[i*cacheEntrySize : (i+1)*cacheEntrySize]
}

// text is the string that a 32-bit offset points to; nil when it points nowhere.
func (c loaderCache) text(offset []byte) []byte {
	at := uint64(c.order.Uint32(offset))
	if at >= uint64(len(c.data)) {
		return nil
	}
	rest := c.data[at:]
	if len(rest) > elfMaxString {
		rest = rest[:elfMaxString]
	}
	end := bytes.IndexByte(rest, 0)
	if end < 0 {
		return nil
	}
	return rest[:end]
}

// cacheFlags is what an entry for the machine carries: libc6 (3) and the ABI's number
// (sysdeps/generic/ldconfig.h). Wrong-width libraries of the same name differ only here.
func cacheFlags(m machine) (uint32, bool) {
	if m.class != elfClass64 {
		return 0, false
	}
	switch m.number {
	case 62: // x86-64
		return 0x0303, true
	case 183: // arm64
		return 0x0a03, true
	case 243: // riscv64, hard float with double precision
		return 0x1003, true
	case 21: // ppc64
		return 0x0503, true
	case 22: // s390x
		return 0x0403, true
	}
	return 0, false
}

// compareLibraries orders names as ldconfig does: runs of digits count as numbers, and
// come after anything else.
func compareLibraries(a, b []byte) int {
	for len(a) > 0 {
		switch {
		case isDigit(a[0]) && len(b) > 0 && isDigit(b[0]):
			var left, right uint32 // the loader lets them overflow too
			for len(a) > 0 && isDigit(a[0]) {
				left = left*10 + uint32(a[0]-'0')
				a = a[1:]
			}
			for len(b) > 0 && isDigit(b[0]) {
				right = right*10 + uint32(b[0]-'0')
				b = b[1:]
			}
			if left != right {
				if int32(left-right) < 0 {
					return -1
				}
				return 1
			}
		case isDigit(a[0]):
			return 1
		case len(b) == 0:
			return 1
		case isDigit(b[0]):
			return -1
		case a[0] != b[0]:
			// Plain char is signed on x86 and unsigned on arm; names are ASCII.
			return int(a[0]) - int(b[0])
		default:
			a, b = a[1:], b[1:]
		}
	}
	if len(b) > 0 {
		return -1
	}
	return 0
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
