package nfs3

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Volume is an [FS] by paths: files are opened, read and written by their names. It is an fs.FS of the
// standard library, an fs.ReadDirFS, an fs.ReadFileFS, an fs.StatFS and an fs.ReadLinkFS.
//
// Names are slash-separated and relative to the root, as in package io/fs: "a/b", and "." for the root. Unlike there, they need not be UTF-8: servers
// have names of any octets.
// Symbolic links on the way are followed as long as they stay within the volume; absolute ones lead out of
// it. Errors are fs.PathError, and have a [Status] in their chain if it was the server's.
//
// All methods may be called by many goroutines.
type Volume struct {
	ctx  context.Context
	fs   FS
	cred *Cred
	info FSInfo
	most int // mostEntries
}

// NewVolume returns an FS by paths. What is done with it is done for c (nil: the user that the FS has for
// that) and ends with ctx.
func NewVolume(ctx context.Context, of FS, c *Cred) (*Volume, error) {
	root, err := of.Root(ctx)
	if err != nil {
		return nil, err
	}
	info, err := of.FSInfo(ctx, c, root.Handle)
	if err != nil {
		return nil, err
	}
	info.complete()
	return &Volume{ctx, of, c, info, mostEntries}, nil
}

// mostEntries bounds the entries of a directory that is listed, which the Volume and its caller keep. It is arbitrary.
const mostEntries = 1 << 20

// ErrTooMany is that of a directory which has more entries than a Volume lists, or whose server tells of others without end.
var ErrTooMany = errors.New("the directory has too many entries to be listed at once: use FS.ReadDir, which keeps none")

// errOutside says that a symbolic link leads out of the volume.
var errOutside = errors.New("a symbolic link on the way leads out of the volume")

// maxLinks is how many symbolic links a path may lead through: as Linux.
const maxLinks = 40

func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// walk finds the object of a path. With follow it goes on where that is a symbolic link.
func (v *Volume) walk(name string, follow bool) (Object, error) {
	if !validPath(name) {
		return Object{}, fs.ErrInvalid
	}
	root, err := v.fs.Root(v.ctx)
	if err != nil {
		return Object{}, err
	}
	above := []Object{root} // the directories from the root to the last one
	at := root
	left := split(name)
	for links := 0; len(left) > 0; {
		next := left[0]
		left = left[1:]
		if next == ".." {
			if len(above) == 1 {
				return Object{}, errOutside
			}
			above = above[:len(above)-1]
			at = above[len(above)-1]
			continue
		}
		found, err := v.fs.Lookup(v.ctx, v.cred, at.Handle, next)
		if err != nil {
			return Object{}, err
		}
		if found.Attr.Type == TypeSymlink && (len(left) > 0 || follow) {
			if links++; links > maxLinks {
				return Object{}, errors.New("too many symbolic links")
			}
			target, err := v.fs.ReadLink(v.ctx, v.cred, found.Handle)
			if err != nil {
				return Object{}, err
			}
			if path.IsAbs(target) {
				return Object{}, errOutside
			}
			left = append(split(target), left...)
			continue
		}
		if at = found; len(left) > 0 || at.Attr.Type == TypeDirectory {
			above = append(above, at)
		}
	}
	return at, nil
}

// validPath is fs.ValidPath of a name that need not be UTF-8.
func validPath(name string) bool { return fs.ValidPath(strings.ToValidUTF8(name, "?")) }

// split returns the names of a path, without those that mean nothing.
func split(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" || s == "." })
}

// parent finds the directory of a path, and returns the last name.
func (v *Volume) parent(name string) (Object, string, error) {
	if !validPath(name) || name == "." {
		return Object{}, "", fs.ErrInvalid
	}
	dir, last := path.Split(name)
	o, err := v.walk(path.Clean(dir), true)
	return o, last, err
}

// Open opens a file or a directory for reading: a [File].
func (v *Volume) Open(name string) (fs.File, error) {
	o, err := v.walk(name, true)
	if err != nil {
		return nil, failed("open", name, err)
	}
	return &File{v: v, name: name, object: o}, nil
}

// OpenFile opens a file that is there for reading and writing.
func (v *Volume) OpenFile(name string) (*File, error) {
	f, err := v.Open(name)
	if err != nil {
		return nil, err
	}
	file := f.(*File)
	if err := CheckRegular(&file.object.Attr); err != nil {
		return nil, failed("open", name, err)
	}
	return file, nil
}

// Create makes a file, or truncates the one that is there, and opens it for reading and writing.
func (v *Volume) Create(name string) (*File, error) {
	dir, last, err := v.parent(name)
	if err != nil {
		return nil, failed("create", name, err)
	}
	mode, size := uint32(0o666), uint64(0)
	o, _, err := v.fs.Create(v.ctx, v.cred, dir.Handle, last, &CreateHow{Set: SetAttr{Mode: &mode, Size: &size}})
	if err != nil {
		return nil, failed("create", name, err)
	}
	return &File{v: v, name: name, object: o}, nil
}

// CreateNew makes a file with a mode, and opens it for reading and writing. It fails with fs.ErrExist if the name is there.
func (v *Volume) CreateNew(name string, mode fs.FileMode) (*File, error) {
	dir, last, err := v.parent(name)
	if err != nil {
		return nil, failed("create", name, err)
	}
	m := ModeOf(mode)
	o, _, err := v.fs.Create(v.ctx, v.cred, dir.Handle, last, &CreateHow{Mode: Guarded, Set: SetAttr{Mode: &m}})
	if err != nil {
		return nil, failed("create", name, err)
	}
	return &File{v: v, name: name, object: o}, nil
}

// ReadFile returns all of a file. It has several calls under way.
func (v *Volume) ReadFile(name string) ([]byte, error) {
	f, err := v.OpenFile(name)
	if err != nil {
		return nil, err
	}
	return f.readAll()
}

// WriteFile makes a file of data, or writes it over the one that is there. It has several calls under way, and
// returns when the server has all of it on stable storage.
func (v *Volume) WriteFile(name string, data []byte, mode fs.FileMode) error {
	f, err := v.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if m := ModeOf(mode); err == nil && f.object.Attr.Mode != m {
		err = f.set(&SetAttr{Mode: &m})
	}
	return errors.Join(err, f.Close())
}

// Stat returns what a name stands for.
func (v *Volume) Stat(name string) (fs.FileInfo, error) {
	o, err := v.walk(name, true)
	return newInfo(name, &o.Attr), failed("stat", name, err)
}

// Lstat is Stat that does not follow a symbolic link.
func (v *Volume) Lstat(name string) (fs.FileInfo, error) {
	o, err := v.walk(name, false)
	return newInfo(name, &o.Attr), failed("lstat", name, err)
}

// ReadLink returns the target of a symbolic link.
func (v *Volume) ReadLink(name string) (string, error) {
	o, err := v.walk(name, false)
	if err != nil {
		return "", failed("readlink", name, err)
	}
	target, err := v.fs.ReadLink(v.ctx, v.cred, o.Handle)
	return target, failed("readlink", name, err)
}

// ReadDir returns the entries of a directory, sorted by name.
func (v *Volume) ReadDir(name string) ([]fs.DirEntry, error) {
	o, err := v.walk(name, true)
	if err != nil {
		return nil, failed("readdir", name, err)
	}
	entries, err := v.list(o.Handle)
	return entries, failed("readdir", name, err)
}

// list returns all entries of a directory but "." and "..": at most as many as there may be. What vanishes while it is listed is left out.
func (v *Volume) list(dir Handle) (all []fs.DirEntry, err error) {
	var found []DirEntry
	_, err = v.fs.ReadDir(v.ctx, v.cred, dir, DirPosition{}, true, func(e *DirEntry) bool {
		if e.Name != "." && e.Name != ".." {
			found = append(found, *e)
		}
		return len(found) <= v.most
	})
	if len(found) > v.most {
		return nil, ErrTooMany
	}
	for i := range found {
		e := &found[i]
		if !e.Attr.Present {
			o, err := v.fs.Lookup(v.ctx, v.cred, dir, e.Name)
			if StatusOf(err) == ErrNoEnt {
				continue
			} else if err != nil {
				return all, err
			}
			e.Attr = Post(o.Attr)
		}
		all = append(all, fs.FileInfoToDirEntry(newInfo(e.Name, &e.Attr.Attr)))
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, err
}

// Mkdir makes a directory.
func (v *Volume) Mkdir(name string, mode fs.FileMode) error {
	dir, last, err := v.parent(name)
	if err == nil {
		m := ModeOf(mode)
		_, _, err = v.fs.Mkdir(v.ctx, v.cred, dir.Handle, last, &SetAttr{Mode: &m})
	}
	return failed("mkdir", name, err)
}

// Symlink makes a symbolic link to target.
func (v *Volume) Symlink(target, name string) error {
	dir, last, err := v.parent(name)
	if err == nil {
		_, _, err = v.fs.Symlink(v.ctx, v.cred, dir.Handle, last, target, &SetAttr{})
	}
	return failed("symlink", name, err)
}

// Link gives a file one more name. It fails with fs.ErrExist if that is there.
func (v *Volume) Link(name, newName string) error {
	o, err := v.walk(name, false)
	if err == nil {
		var dir Object
		var last string
		if dir, last, err = v.parent(newName); err == nil {
			_, _, err = v.fs.Link(v.ctx, v.cred, o.Handle, dir.Handle, last)
		}
	}
	return failed("link", name, err)
}

// Remove removes a file, or an empty directory.
func (v *Volume) Remove(name string) error {
	dir, last, err := v.parent(name)
	if err == nil {
		if _, err = v.fs.Remove(v.ctx, v.cred, dir.Handle, last); StatusOf(err) == ErrIsDir || StatusOf(err) == ErrPerm {
			if _, rmdirErr := v.fs.Rmdir(v.ctx, v.cred, dir.Handle, last); StatusOf(rmdirErr) != ErrNotDir {
				err = rmdirErr
			}
		}
	}
	return failed("remove", name, err)
}

// Rename gives a file or directory another name. What has that name is replaced.
func (v *Volume) Rename(name, newName string) error {
	from, last, err := v.parent(name)
	if err == nil {
		var to Object
		var newLast string
		if to, newLast, err = v.parent(newName); err == nil {
			_, _, err = v.fs.Rename(v.ctx, v.cred, from.Handle, last, to.Handle, newLast)
		}
	}
	return failed("rename", name, err)
}

// Chmod changes the mode of a file.
func (v *Volume) Chmod(name string, mode fs.FileMode) error {
	m := ModeOf(mode)
	return v.set("chmod", name, &SetAttr{Mode: &m})
}

// Chtimes changes the times of a file. A zero time is left as it is.
func (v *Volume) Chtimes(name string, atime, mtime time.Time) error {
	var set SetAttr
	if !atime.IsZero() {
		set.SetAtime, set.Atime = ClientTime, TimeOf(atime)
	}
	if !mtime.IsZero() {
		set.SetMtime, set.Mtime = ClientTime, TimeOf(mtime)
	}
	return v.set("chtimes", name, &set)
}

func (v *Volume) set(op, name string, set *SetAttr) error {
	o, err := v.walk(name, true)
	if err == nil {
		_, err = v.fs.SetAttr(v.ctx, v.cred, o.Handle, set, nil)
	}
	return failed(op, name, err)
}

// fileInfo is what Stat returns. Sys has the attributes.
type fileInfo struct {
	name string
	attr Attr
}

func newInfo(name string, a *Attr) *fileInfo { return &fileInfo{path.Base(name), *a} }

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return int64(i.attr.Size) }
func (i *fileInfo) Mode() fs.FileMode  { return i.attr.FileMode() }
func (i *fileInfo) ModTime() time.Time { return i.attr.Mtime.Time() }
func (i *fileInfo) IsDir() bool        { return i.attr.Type == TypeDirectory }
func (i *fileInfo) Sys() any           { return &i.attr }
