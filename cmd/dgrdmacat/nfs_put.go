package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
)

// nfsTidy is how long a command that was interrupted takes to remove what it began. Arbitrary: short for a person.
const nfsTidy = time.Second

var nfsPutCommand = command{
	name: "nfs put", summary: "copy a file of this machine to a server of NFS", args: "FILE ADDRESS",
	about: `Copies FILE, or with - standard input, to a server of NFS version 3: to ADDRESS, or under its own
name into that directory. The server has it under another name (.dgrdma-*.part) until all of it
is on the server's disk (COMMIT); then it gets its own. What a server loses before, because it is
started again, is written again if it knows its files by the same handles then, as Linux's does,
and nfs serve of most file systems. Else the command fails, removes what it can, and names what
is left there: run it again. With -r it copies a directory; each file of it is whole, and after
a failure some are missing.

  dgrdmacat nfs put file rdma:10.0.0.2/export
  tar c . | dgrdmacat nfs put - tcp:10.0.0.2/export/backup.tar
  dgrdmacat nfs put -r dir rdma:10.0.0.2/export/copy

Up to eight parts of 1 MiB are written at once. A new file has the permissions of FILE, and one
that is replaced keeps its own.

` + nfsAbout,
	flags: func(fs *flag.FlagSet) action {
		o := new(nfsCopyFlags)
		o.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			if len(args) != 2 || args[0] == "" {
				return badUsage("need FILE ADDRESS, as in file rdma:10.0.0.2/export")
			}
			at, err := parseNFS(args[1])
			if _, swapped := parseNFS(args[0]); err != nil && swapped == nil {
				return badUsage("the address comes last: put %s %s", args[1], args[0])
			}
			if err == nil {
				err = o.check()
			}
			if err != nil {
				return err
			}
			return o.run(ctx, std, at, args[0], func(c *nfsCopy) error { return c.put(args[0]) })
		}
	},
}

// put copies a file or a directory to the address.
func (c *nfsCopy) put(file string) error {
	info, err := os.Stat(file)
	switch stdin := file == "-"; {
	case stdin:
	case err != nil:
		return err
	case info.IsDir() && !c.recursive:
		return fmt.Errorf("%s is a directory: -r copies all that is in it", file)
	}
	there, err := c.Stat(c.name)
	switch {
	case err == nil && there.IsDir() && file == "-":
		return fmt.Errorf("%v is a directory: name a file in it", c.at)
	case err == nil && there.IsDir():
		base := filepath.Base(file)
		if whole, err := filepath.Abs(file); err == nil {
			base = filepath.Base(whole)
		}
		c.at.path, c.name = path.Join(c.at.path, base), path.Join(c.name, base)
	case err == nil && c.at.slash:
		return c.at.noDirectory()
	case err == nil, errors.Is(err, fs.ErrNotExist) && !c.at.slash:
	case c.at.slash && errors.Is(err, fs.ErrNotExist) && info != nil && info.IsDir():
	default:
		return c.explain(c.ctx, c.at.String(), err)
	}
	if info != nil && info.IsDir() {
		return c.many(func() error { return c.putDir(file, c.name, info.Mode()) })
	}
	in, err := openInput(c.ctx, file, c.std.in)
	if err != nil {
		return err
	}
	defer in.Close()
	mode := fs.FileMode(0o644)
	if info != nil && info.Mode().IsRegular() { // the permissions of a device say nothing of what it has
		mode = info.Mode()
	}
	return c.one(in.size, func() error { return c.putFile(in, c.name, mode) })
}

// putFile copies what an input has.
func (c *nfsCopy) putFile(in *input, name string, mode fs.FileMode) error {
	there, err := c.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		mode &= 0o777
	case err != nil:
		return c.explain(c.ctx, c.remote(name), err)
	case !c.force && there.Mode().IsRegular():
		return fmt.Errorf("%s exists already; --force replaces it", c.remote(name))
	case !there.Mode().IsRegular():
		return fmt.Errorf("%s exists already, and is no file", c.remote(name))
	default:
		mode = there.Mode()
	}
	part := path.Join(path.Dir(name), fmt.Sprintf(".dgrdma-%016x.part", rand.Uint64()))
	to, err := c.CreateNew(part, mode)
	if err != nil {
		return c.explain(c.ctx, c.remote(name), err)
	}
	if err = c.fill(to, in, name); err == nil {
		err = c.giveName(part, name)
	}
	if err != nil {
		c.discard(part)
	}
	return err
}

// fill writes all that an input has, and returns when it is on the server's disk.
func (c *nfsCopy) fill(to *nfs3.File, in *input, name string) error {
	from := &passingIn{r: in, meter: c.meter}
	n, err := to.ReadFrom(from)
	switch {
	case from.err != nil && from.err != io.EOF:
		return from.err
	case err == nil && n < in.size:
		return fmt.Errorf("%s changed while it was read: %d of %s", in, n, count(in.size, "byte"))
	case err == nil:
		err = to.Close()
	}
	return c.explain(c.ctx, c.remote(name), err)
}

// giveName gives a file that is whole its name.
func (c *nfsCopy) giveName(part, name string) error {
	if c.force {
		return c.explain(c.ctx, c.remote(name), c.Rename(part, name))
	}
	err := c.Link(part, name) // which replaces none
	switch {
	case err == nil:
		if c.Remove(part) != nil {
			c.leaves(part, "is another name of "+c.remote(name)+", and is left there")
		}
		return nil
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already; --force replaces it", c.remote(name))
	case nfs3.StatusOf(err) == nfs3.ErrNotSupp, nfs3.StatusOf(err) == nfs3.ErrPerm: // a file system without links
		err = c.Rename(part, name)
	}
	return c.explain(c.ctx, c.remote(name), err)
}

// discard removes a file that is not whole, also after an interrupt, and after a restart of a server that has new handles then.
func (c *nfsCopy) discard(part string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.ctx), nfsTidy)
	defer stop()
	err := remove(ctx, c.client, part)
	if nfs3.StatusOf(err) == nfs3.ErrStale { // which says nothing of the file
		var again *nfs3.Client
		if again, err = c.mountAgain(ctx); err == nil {
			err = remove(ctx, again, part)
		}
	}
	if err != nil && nfs3.StatusOf(err) != nfs3.ErrNoEnt {
		c.leaves(part, "is left there, and is not whole")
	}
}

func remove(ctx context.Context, from *nfs3.Client, name string) error {
	v, err := nfs3.NewVolume(ctx, from, nil)
	if err != nil {
		return err
	}
	return v.Remove(name)
}

// leaves notes a name that stays at the server, which is said at the end.
func (c *nfsCopy) leaves(name, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leavings = append(c.leavings, errors.New(c.remote(name)+" "+why))
}

// passingIn passes on what is read, counts it, and knows whether that failed: else an error is the server's.
type passingIn struct {
	r     io.Reader
	meter *meter
	err   error
}

func (r *passingIn) Read(b []byte) (n int, err error) {
	n, r.err = r.r.Read(b)
	r.meter.moved.Add(int64(n))
	return n, r.err
}

// putDir copies a directory.
func (c *nfsCopy) putDir(dir, name string, mode fs.FileMode) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := c.Mkdir(name, mode&0o777|0o700); err != nil {
		if there, wrong := c.Stat(name); wrong != nil || !there.IsDir() {
			return c.explain(c.ctx, c.remote(name), err)
		}
	}
	for _, e := range entries {
		below, at := filepath.Join(dir, e.Name()), path.Join(name, e.Name())
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeDir:
			err = c.putDir(below, at, info.Mode())
		case fs.ModeSymlink:
			err = c.putLink(below, at)
		case 0:
			err = c.begin(func() error {
				in, err := openInput(c.ctx, below, nil)
				if err != nil {
					return err
				}
				defer in.Close()
				return c.putFile(in, at, info.Mode())
			})
		default:
			c.leftOut(below)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putLink copies a symbolic link as it is.
func (c *nfsCopy) putLink(file, name string) error {
	target, err := os.Readlink(file)
	if err != nil {
		return err
	}
	if was, err := c.ReadLink(name); err == nil && was == target {
		return nil
	}
	err = c.Symlink(target, name)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already: remove it", c.remote(name))
	}
	return c.copied(c.explain(c.ctx, c.remote(name), err))
}
