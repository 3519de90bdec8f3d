package registrytest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"strings"
	"time"
)

// made is the time of everything in an archive, so that the same files give the same bytes.
var made = time.Date(1985, 10, 26, 8, 15, 0, 0, time.UTC)

// Tarball packs files, given by path below folder, into a gzipped tar archive. Files that
// begin with "#!" are executable. It panics on what only a broken test can give it.
func Tarball(folder string, files map[string]string) []byte {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content := files[path]
		mode := int64(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		must(archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: folder + "/" + path, Mode: mode, Size: int64(len(content)), ModTime: made, Format: tar.FormatPAX,
		}))
		_, err := archive.Write([]byte(content))
		must(err)
	}
	must(archive.Close())
	must(zipped.Close())
	return out.Bytes()
}

// zipped packs files into a zip archive.
func zipped(files map[string]string) []byte {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: path, Method: zip.Deflate, Modified: made})
		must(err)
		_, err = w.Write([]byte(files[path]))
		must(err)
	}
	must(archive.Close())
	return out.Bytes()
}

// tamper returns an archive that a client must refuse by its hash: the last byte differs, so
// its length and its beginning are what they were.
func tamper(archive []byte) []byte {
	if len(archive) == 0 {
		return archive
	}
	other := bytes.Clone(archive)
	other[len(other)-1] ^= 0xff
	return other
}

// must ends a test that made something that cannot be.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
