package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/dgrdma/dgrdma/link/stream"
	"github.com/dgrdma/dgrdma/nfs3"
)

var nfsGetCommand = command{
	name: "nfs get", summary: "copy a file of a server of NFS to this machine", args: "ADDRESS [FILE]",
	about: `Copies a file of a server of NFS version 3 to FILE, or under its own name into the directory
FILE, without one into the current one. The file gets its name when all of it is on disk: until
then, and after a failure, there is nothing.

  dgrdmacat nfs get rdma:10.0.0.2/export/file
  dgrdmacat nfs get -r tcp:[fd00::2]/export/dir /tmp/

With -r it copies a directory: to FILE, or under its own name into FILE if that ends with / or is
the current directory. A FILE that is there already has to have the name of the directory; an
ADDRESS that ends with /. is what is in it, and goes to any. Each file is whole. What cannot be
copied is named, the rest is copied, and the command fails: run it again, with --force, which
replaces files that are there.

Up to eight parts of 1 MiB are read at once. A new file has the permissions of the one that
is copied, less those that the umask takes away.

` + nfsAbout,
	flags: func(fs *flag.FlagSet) action {
		o := new(nfsCopyFlags)
		o.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return badUsage("need ADDRESS [FILE], as in rdma:10.0.0.2/export/file")
			}
			at, err := parseNFS(args[0])
			if err == nil {
				err = o.check()
			}
			file := "."
			if len(args) == 2 {
				file = args[1]
			}
			switch {
			case err != nil:
				return err
			case file == "":
				return badUsage("the name of a file is empty")
			case file == "-":
				return badUsage("nfs cat prints files on standard output; ./- is a file of that name")
			}
			return o.run(ctx, std, at, file, func(c *nfsCopy) error { return c.get(file) })
		}
	},
}

// get copies what the address is of.
func (c *nfsCopy) get(file string) error {
	info, err := c.Stat(c.name)
	if err != nil {
		return c.explain(c.ctx, c.at.String(), err)
	}
	if info.IsDir() && !c.recursive {
		return fmt.Errorf("%v is a directory: -r copies all that is in it", c.at)
	}
	if err := c.readable(info); err != nil {
		return err
	}
	there, err := os.Stat(file)
	inside := err == nil && there.IsDir()
	if info.IsDir() {
		isHere := filepath.Clean(file) == "." || filepath.Base(file) == ".."
		inside, err = into(c.at.String(), strings.TrimRight(file, "/"), path.Base(c.at.path), c.at.contents, isHere || strings.HasSuffix(file, "/"), inside)
		if err != nil {
			return err
		}
	}
	if inside {
		if file = filepath.Join(file, path.Base(c.at.path)); path.Base(c.at.path) == "/" {
			return fmt.Errorf("%v has no name: give that of a new directory", c.at)
		}
	}
	if info.IsDir() {
		return c.many(func() error { return c.getDir(c.name, file, info.Mode()) })
	}
	return c.one(info.Size(), func() error { return c.getFile(c.name, file, info) })
}

// remote is the address of a name in the volume.
func (f *nfsFiles) remote(name string) string {
	if name == f.name {
		return f.at.String()
	}
	at := f.at
	at.path = path.Join(f.export, name)
	return at.String()
}

// getFile copies a file.
func (c *nfsCopy) getFile(name, file string, info fs.FileInfo) error {
	from, err := c.OpenFile(name)
	if err != nil {
		return c.explain(c.ctx, c.remote(name), err)
	}
	_, missing := os.Lstat(file)
	to, err := stream.CreateFile(file, c.force)
	if err != nil {
		return orForce(err)
	}
	defer to.Discard()
	if created, ok := to.(interface {
		Stat() (fs.FileInfo, error)
		Chmod(fs.FileMode) error
	}); ok && errors.Is(missing, fs.ErrNotExist) {
		was, err := created.Stat()
		if err != nil {
			return err
		}
		// A umask that lets a user read the file lets the user also execute it, if the mode does.
		if may := was.Mode() | (was.Mode()&0o444)>>2; info.Mode()&may&0o777 != was.Mode() {
			if err := created.Chmod(info.Mode() & may & 0o777); err != nil {
				return err
			}
		}
	}
	out := &passing{w: to, meter: c.meter}
	n, err := from.WriteTo(out)
	switch {
	case out.err != nil && c.ctx.Err() == nil:
		return out.err
	case err != nil:
		return c.explain(c.ctx, c.remote(name), err)
	case n < info.Size():
		return fmt.Errorf("%s changed while it was read: %d of %s", c.remote(name), n, count(info.Size(), "byte"))
	}
	return to.Commit()
}

// getDir copies a directory. What is in it belongs to this machine's user, whatever a server says: names lead nowhere else, and no link
// of the server is followed.
func (c *nfsCopy) getDir(name, dir string, mode fs.FileMode) error {
	entries, err := c.ReadDir(name)
	if err != nil {
		return c.explain(c.ctx, c.remote(name), err)
	}
	if err := os.Mkdir(dir, mode&0o777|0o700); err != nil {
		if there, wrong := os.Lstat(dir); wrong != nil || !there.IsDir() {
			return err
		}
	}
	for i, e := range entries {
		below, at := path.Join(name, e.Name()), filepath.Join(dir, e.Name())
		if i > 0 && e.Name() == entries[i-1].Name() || nfs3.CheckName(e.Name()) != nil {
			return fmt.Errorf("%s: the server lists a name twice, or one that is none: %q", c.remote(name), e.Name())
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeDir:
			err = c.getDir(below, at, info.Mode())
		case fs.ModeSymlink:
			err = c.getLink(below, at)
		case 0:
			if there, missing := os.Lstat(at); missing == nil && there.Mode().Type() != 0 {
				err = fmt.Errorf("%s is there, and is no file", at)
				break
			}
			err = c.begin(func() error { return c.getFile(below, at, info) })
		default:
			err = notCopied(c.remote(below))
		}
		if err := c.failed(err); err != nil {
			return err
		}
	}
	return nil
}

// getLink copies a symbolic link as it is.
func (c *nfsCopy) getLink(name, file string) error {
	target, err := c.ReadLink(name)
	if err != nil {
		return c.explain(c.ctx, c.remote(name), err)
	}
	if was, err := os.Readlink(file); err == nil && was == target {
		return nil
	}
	err = os.Symlink(target, file)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s exists already: remove it", file)
	}
	return c.copied(err)
}
