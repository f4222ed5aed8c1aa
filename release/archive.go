package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// archive is for every Linux: unpacked, the program runs where it lies.
func (p *product) archive() (name string, data []byte, err error) {
	all := []file{p.binary}
	put := func(dir string, files ...file) {
		for _, f := range files {
			all = append(all, file{path.Join(dir, f.name), f.mode, f.data})
		}
	}
	put("man/man1", p.manual...)
	put("completions", slices.Collect(maps.Values(p.completions))...)
	put("", p.pages...)
	for _, f := range p.licences {
		if own, is := strings.CutPrefix(f.name, module+"/"); is {
			put("", file{own, f.mode, f.data})
		} else {
			put("licences", f)
		}
	}
	top := fmt.Sprintf("%s-%s-linux-%s", program, p.version, p.arch)
	data, err = tarball(top+"/", all, p.at)
	return top + ".tar.gz", data, err
}

// module is the one whose licence is the program's.
const module = "github.com/dgrdma/dgrdma"

// tarball packs files, and the directories above them, below a top: sorted, of one time, and
// root's.
func tarball(top string, files []file, at time.Time) ([]byte, error) {
	all := []file{{top, 0o755, nil}}
	seen := map[string]bool{".": true}
	for _, f := range files {
		all = append(all, file{top + f.name, f.mode, f.data})
		for dir := path.Dir(f.name); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			all = append(all, file{top + dir + "/", 0o755, nil})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, f := range all {
		h := &tar.Header{Name: f.name, Mode: f.mode, ModTime: at, Size: int64(len(f.data)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// compressed is a file as Debian keeps it.
func compressed(f file) (file, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return file{}, err
	}
	if _, err := z.Write(f.data); err != nil {
		return file{}, err
	}
	err = z.Close()
	return file{f.name + ".gz", f.mode, b.Bytes()}, err
}
