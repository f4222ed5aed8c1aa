// Package exercise works with files, and compares all that it reads with a model. Its FS is a file system of a kernel that has mounted
// something, or an nfs3.Volume: the same work is done from both sides.
package exercise

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"sync"
)

// FS is a file system by paths. An nfs3.Volume is one.
type FS interface {
	Mkdir(name string, mode fs.FileMode) error
	WriteFile(name string, data []byte, mode fs.FileMode) error
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Rename(name, newName string) error
	Remove(name string) error
}

// Files makes n small files in a new directory, lists, reads, renames and removes them, and removes the directory. Several goroutines
// do so at once.
func Files(on FS, dir string, n, goroutines int) error {
	if err := on.Mkdir(dir, 0o777); err != nil {
		return err
	}
	old := func(i int) string { return path.Join(dir, fmt.Sprintf("file%05d", i)) }
	renamed := func(i int) string { return path.Join(dir, fmt.Sprintf("a-longer-name-of-file%05d", i)) }
	steps := []struct {
		files int // that are there afterwards
		do    func(i int) error
	}{
		{n, func(i int) error { return on.WriteFile(old(i), small(i), 0o644) }},
		{n, func(i int) error { return read(on, old(i), small(i)) }},
		{n, func(i int) error { return on.Rename(old(i), renamed(i)) }},
		{n, func(i int) error { return read(on, renamed(i), small(i)) }},
		{0, func(i int) error { return on.Remove(renamed(i)) }},
	}
	for k, step := range steps {
		if err := each(n, goroutines, step.do); err != nil {
			return fmt.Errorf("step %d of the work with %d files: %w", k+1, n, err)
		}
		entries, err := on.ReadDir(dir)
		if err != nil || len(entries) != step.files {
			return fmt.Errorf("after step %d there are %d files, not %d: %v", k+1, len(entries), step.files, err)
		}
	}
	return on.Remove(dir)
}

// Tree makes n files of up to 100 KB in directories of ten.
func Tree(on FS, dir string, n int) error {
	if err := on.Mkdir(dir, 0o777); err != nil {
		return err
	}
	for i := range n {
		of := path.Join(dir, fmt.Sprint(i/10))
		if i%10 == 0 {
			if err := on.Mkdir(of, 0o777); err != nil {
				return err
			}
		}
		if err := on.WriteFile(path.Join(of, fmt.Sprint(i)), Pattern(i, i*i%100_003), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func small(i int) []byte { return Pattern(i, i%509) }

// Pattern returns n octets that differ from those of another seed.
func Pattern(seed, n int) []byte {
	b := make([]byte, n)
	x := uint32(seed)*2654435761 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

func read(on FS, name string, want []byte) error {
	got, err := on.ReadFile(name)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%s has %d octets, not the %d that were written", name, len(got), len(want))
	}
	return err
}

// each calls do for all numbers below n, and returns an error of it.
func each(n, goroutines int, do func(i int) error) error {
	var (
		all  sync.WaitGroup
		errs = make(chan error, goroutines)
	)
	for g := range goroutines {
		all.Go(func() {
			for i := g; i < n; i += goroutines {
				if err := do(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs // nil if there is none
}
