package packages

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
)

// npmNewest reads the tag "latest" of a package from the answer that npm got during the
// install and left in the stage's cache. It returns "" when the answer is not there: a
// registry may forbid keeping it.
func npmNewest(s Stage, name string) string {
	cache := filepath.Join(s.Home, ".npm", "_cacache")
	suffix := "/" + strings.ReplaceAll(name, "/", "%2f")
	newest := ""
	_ = filepath.WalkDir(filepath.Join(cache, "index-v5"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what cannot be read says nothing
		}
		name, err := filepath.Rel(cache, path)
		if err != nil {
			return err
		}
		text, err := readInside(cache, name)
		if err != nil || !bytes.Contains(text, []byte(suffix)) {
			return nil //nolint:nilerr // as above
		}
		for line := range bytes.Lines(text) {
			_, record, found := bytes.Cut(line, []byte("\t"))
			var entry struct{ Key, Integrity string }
			if !found || json.Unmarshal(record, &entry) != nil || !strings.HasSuffix(entry.Key, suffix) {
				continue
			}
			if tag := latestTag(cache, entry.Integrity); tag != "" {
				newest = tag // the last record of a key holds
			}
		}
		return nil
	})
	return newest
}

// latestTag reads the tag out of one answer, kept under its hash.
func latestTag(cache, integrity string) string {
	algorithm, sum, _ := strings.Cut(integrity, "-")
	raw, err := base64.StdEncoding.DecodeString(sum)
	if err != nil || len(raw) < 8 {
		return ""
	}
	name := hex.EncodeToString(raw)
	text, err := readInside(cache, filepath.Join("content-v2", filepath.Base(algorithm), name[:2], name[2:4], name[4:]))
	if err != nil {
		return ""
	}
	var answer struct {
		Tags map[string]string `json:"dist-tags"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return ""
	}
	return answer.Tags["latest"]
}

// ParseNPMNewest reads what the step [NPMConfig.Newest] printed: a version, or "".
func ParseNPMNewest(output []byte) string {
	version := strings.Trim(strings.TrimSpace(string(output)), `'"`)
	if strings.ContainsAny(version, " \n") {
		return ""
	}
	return version
}
