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
	"slices"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
)

// nfsTidy is how long a command that was interrupted, or whose server is silent, takes to remove what it began. Arbitrary: short for a
// person.
const nfsTidy = time.Second

var nfsPutCommand = command{
	name: "nfs put", summary: "copy a file of this machine to a server of NFS", args: "FILE ADDRESS",
	about: `Copies FILE, or with - standard input, to a server of NFS version 3: to ADDRESS, or under its own
name into that directory. The server has it under another name (.dgrdma-*.part) until all of it
is on the server's disk (COMMIT); then it gets its own. What a server loses before, because it is
started again, is written again if it knows its files by the same handles then, as Linux's does,
and nfs serve of most file systems. Else the command fails, removes what it can, and names what
may be left there: run it again.

  dgrdmacat nfs put file rdma:10.0.0.2/export
  tar c . | dgrdmacat nfs put - tcp:10.0.0.2/export/backup.tar
  dgrdmacat nfs put -r dir rdma:[fd00::2]/export/copy

With -r it copies a directory: to ADDRESS, or under its own name into ADDRESS if that ends with /
or is an export. An ADDRESS that is there already has to have the name of the directory; dir/. is
what is in dir, and goes to any. Each file is whole. What cannot be copied is named, the rest is
copied, and the command fails: run it again, with --force, which replaces files that are there.

Up to eight parts of 1 MiB are written at once. A new file has the permissions of FILE, and one
that is replaced keeps its own.

` + nfsAbout,
	flags: func(fs *flag.FlagSet) action {
		o := new(nfsCopyFlags)
		o.register(fs)
		return func(ctx context.Context, std *stdio, args []string) error {
			switch {
			case len(args) != 2:
				return badUsage("need FILE ADDRESS, as in file rdma:10.0.0.2/export")
			case args[0] == "":
				return badUsage("the name of FILE is empty (unset variable?)")
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
		return fmt.Errorf("%s: %w", file, errors.Unwrap(err))
	case info.IsDir() && !c.recursive:
		return fmt.Errorf("%s is a directory: -r copies all that is in it", file)
	case info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
		return fmt.Errorf("%s is neither a file nor a directory, and so not copied; - as FILE copies standard input", file)
	}
	there, err := c.Stat(c.name)
	switch {
	case err == nil && there.IsDir() && file == "-":
		return fmt.Errorf("%v is a directory: name a file in it", c.at)
	case err == nil && c.at.slash && !there.IsDir():
		return c.at.noDirectory()
	case err == nil:
	case errors.Is(err, fs.ErrNotExist) && (!c.at.slash || info != nil && info.IsDir()):
	default:
		return c.explain(c.ctx, c.at.String(), err)
	}
	base := filepath.Base(file)
	if whole, err := filepath.Abs(file); err == nil {
		base = filepath.Base(whole)
	}
	isDir := err == nil && there.IsDir()
	inside := isDir
	if info != nil && info.IsDir() {
		inside, err = into(strings.TrimRight(file, "/"), c.at.String(), base, strings.HasSuffix(file, "/."), c.at.slash || c.name == ".", isDir)
		if err != nil {
			return err
		}
	}
	if inside {
		c.at.path, c.name = path.Join(c.at.path, base), path.Join(c.name, base)
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
		if !errors.As(err, new(nfs3.Status)) && errors.As(err, new(*rpc.CallError)) {
			c.leaves(part, mayBeLeft)
		}
		return c.explain(c.ctx, c.remote(c.missing(name, err)), err)
	}
	if err = c.fill(to, in, name); err == nil {
		err = c.giveName(part, name)
	}
	if err != nil {
		c.discard(part, err)
	}
	return err
}

// missing returns the directory of a name that is not there, or the name if that is not why it cannot be made.
func (c *nfsCopy) missing(name string, err error) string {
	for dir := path.Dir(name); nfs3.StatusOf(err) == nfs3.ErrNoEnt && dir != "."; dir = path.Dir(dir) {
		if _, err = c.Stat(dir); err != nil {
			name = dir
		}
	}
	return name
}

// fill writes all that an input has, and returns when it is on the server's disk.
func (c *nfsCopy) fill(to *nfs3.File, in *input, name string) error {
	from := &passingIn{r: in, meter: c.meter}
	n, err := to.ReadFrom(from)
	switch {
	case from.err != nil && from.err != io.EOF:
		return from.err
	case err == nil && n < in.size:
		return fmt.Errorf("%s became shorter while it was read: %d of %s", in, n, count(in.size, "byte"))
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
			c.leaves(part, "is another name of "+c.remote(name)+", and is left there: nfs rm removes it")
		}
		return nil
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already; --force replaces it", c.remote(name))
	case slices.Contains(withoutLinks, nfs3.StatusOf(err)):
		if _, missing := c.Lstat(name); missing == nil {
			return fmt.Errorf("%s exists already; --force replaces it", c.remote(name))
		}
		err = c.Rename(part, name)
	}
	return c.explain(c.ctx, c.remote(name), err)
}

// withoutLinks are what file systems without hard links answer to LINK; ErrROFS is that of an FS that embeds nfs3.ReadOnlyFS, and writes.
var withoutLinks = []nfs3.Status{nfs3.ErrNotSupp, nfs3.ErrPerm, nfs3.ErrROFS}

// What is said of a part of a file, if the server has refused to remove it, and if it has not answered.
const (
	isLeft    = "is left there, and is not whole: nfs rm removes it"
	mayBeLeft = "may be left there, and is not whole: nfs rm removes it"
)

// discard removes a file that is not whole because of an error, also after an interrupt, and after a restart of a server that has new
// handles then.
func (c *nfsCopy) discard(part string, because error) {
	long := c.nfsFiles.wait
	if c.ctx.Err() != nil || errors.Is(because, rpc.ErrNoReply) || unanswered(because) {
		long = nfsTidy
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.ctx), long)
	defer stop()
	err := remove(ctx, c.client, part)
	if nfs3.StatusOf(err) == nfs3.ErrStale { // which says nothing of the file
		var again *nfs3.Client
		if again, err = c.mountAgain(ctx); err == nil {
			err = remove(ctx, again, part)
		}
	}
	switch {
	case err == nil || nfs3.StatusOf(err) == nfs3.ErrNoEnt:
	case errors.As(err, new(nfs3.Status)):
		c.leaves(part, isLeft)
	default:
		c.leaves(part, mayBeLeft)
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
			if err := c.failed(err); err != nil {
				return err
			}
			continue
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
			err = notCopied(below)
		}
		if err := c.failed(err); err != nil {
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
