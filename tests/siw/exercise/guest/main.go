// Command guest does the work of package exercise in a guest of the kit, with files that its kernel has mounted.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dgrdma/dgrdma/tests/siw/exercise"
)

var (
	n          = flag.Int("n", 1000, "files, or operations")
	goroutines = flag.Int("goroutines", 8, "that work with files at once")
	seed       = flag.Uint64("seed", 1, "of random")
	most       = flag.Int("most", 256<<10, "octets of a file")
)

func main() {
	flag.Parse()
	if err := do(flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Println("exercise:", err)
		os.Exit(1)
	}
	fmt.Println("exercise:", flag.Arg(0), "done")
}

func do(work string, where []string) error {
	switch work {
	case "files": // DIRECTORY
		return exercise.Files(directory(where[0]), "files", *n, *goroutines)
	case "tree":
		return exercise.Tree(directory(where[0]), "tree", *n)
	case "odd": // FILE
		f, err := open(where[0], syscall.O_DIRECT)
		if err != nil {
			return err
		}
		defer f.Close()
		return exercise.Odd(f)
	case "random":
		r := &exercise.Random{Seed: *seed, Most: *most, Open: []func() (exercise.File, error){
			func() (exercise.File, error) { return open(where[0], 0) },
			func() (exercise.File, error) { return open(where[0], syscall.O_DIRECT) },
		}}
		return r.Run(*n)
	case "speed": // DIRECTORY...
		return exercise.Speed(where, *n)
	}
	return fmt.Errorf("what is %q?", work)
}

// directory is an exercise.FS.
type directory string

func (d directory) at(name string) string { return filepath.Join(string(d), name) }

func (d directory) Mkdir(name string, mode fs.FileMode) error { return os.Mkdir(d.at(name), mode) }
func (d directory) ReadFile(name string) ([]byte, error)      { return os.ReadFile(d.at(name)) }
func (d directory) ReadDir(name string) ([]fs.DirEntry, error) {
	return os.ReadDir(d.at(name))
}
func (d directory) Rename(name, newName string) error { return os.Rename(d.at(name), d.at(newName)) }
func (d directory) Remove(name string) error          { return os.Remove(d.at(name)) }
func (d directory) WriteFile(name string, data []byte, mode fs.FileMode) error {
	return os.WriteFile(d.at(name), data, mode)
}

// file drops the kernel's copy when it is synced, so that the next read is one of the server.
type file struct{ *os.File }

func open(name string, flags int) (file, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|flags, 0o666)
	return file{f}, err
}

func (f file) Sync() error {
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	if err := f.File.Sync(); err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
