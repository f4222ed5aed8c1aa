package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
)

// nfsAtOnce is how many files of a directory are copied at once, each by up to eight calls. Arbitrary: enough to hide round trips.
const nfsAtOnce = 8

// nfsCopyFlags are those of get and put.
type nfsCopyFlags struct {
	nfsFlags
	force, recursive, json bool
}

func (o *nfsCopyFlags) register(fs *flag.FlagSet) {
	o.nfsFlags.register(fs)
	fs.BoolVar(&o.force, "force", false, "replace files that exist")
	fs.BoolVar(&o.recursive, "recursive", false, "copy directories with all that is in them")
	sameAs(fs, "r", "recursive")
	fs.BoolVar(&o.json, "json", false, "print the summary as one JSON object on standard output")
}

// nfsCopied is the object that --json prints.
type nfsCopied struct {
	builtFrom
	Address string  `json:"address"`
	File    string  `json:"file"`
	Files   int64   `json:"files"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	MBPerS  float64 `json:"mb_per_s"`
	Error   string  `json:"error,omitempty"`
}

// rate is how fast it was: of many small files, how many a second.
func (r *nfsCopied) rate() string {
	if r.Files > 1 && r.MBPerS < 1 && r.Seconds > 0 {
		return threeDigits(float64(r.Files)/r.Seconds) + " files/s"
	}
	return threeDigits(r.MBPerS) + " MB/s"
}

// nfsCopy copies files to or from a server.
type nfsCopy struct {
	*nfsCopyFlags
	*nfsFiles
	ctx   context.Context
	std   *stdio
	meter *meter

	all    sync.WaitGroup
	places chan struct{}
	mu     sync.Mutex
	files  int64
	err    error // that ended the copy of a directory

	omitted  []error // why files of it are not copied: the first ones
	more     int     // further such files
	leavings []error // names that stay at the server
}

// run has f copy, shows progress, and prints what was copied.
func (o *nfsCopyFlags) run(ctx context.Context, std *stdio, at nfsAddress, file string, f func(c *nfsCopy) (err error)) error {
	r := &nfsCopied{Address: at.String(), File: file}
	files, err := o.mountNFS(ctx, at, nfsTidy)
	if err == nil {
		c := &nfsCopy{nfsCopyFlags: o, nfsFiles: files, ctx: ctx, std: std, meter: newMeter(-1), places: make(chan struct{}, nfsAtOnce)}
		err = f(c)
		took := time.Since(c.meter.began)
		c.close()
		if len(c.leavings) > 0 {
			err = errors.Join(append([]error{err}, c.leavings...)...)
		}
		r.Files, r.Bytes, r.Seconds = c.files, c.meter.moved.Load(), took.Seconds()
		r.MBPerS = perSecond(uint64(r.Bytes), took) / 1e6
	}
	if err != nil {
		r.Error = err.Error()
	}
	switch {
	case owesObject(o.json, err):
		r.builtFrom = thisBuild()
		return errors.Join(err, json.NewEncoder(std.out).Encode(r))
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(std.err, "copied %s, %s in %.2f s, %s\n", count(r.Files, "file"), count(r.Bytes, "byte"), r.Seconds, r.rate())
	return err
}

// one copies one file of so many bytes, with progress.
func (c *nfsCopy) one(size int64, do func() error) error {
	c.meter.total = size
	stop := c.meter.show(c.std.err)
	defer stop()
	return c.copied(do())
}

// copied counts a file.
func (c *nfsCopy) copied(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.files++
	}
	return err
}

// many copies the files of a directory: walk calls c.begin for each. Its error names what is not copied.
func (c *nfsCopy) many(walk func() error) error {
	stop := c.meter.show(c.std.err)
	defer stop()
	c.failed(walk())
	c.all.Wait()
	all := c.omitted
	if c.more > 0 {
		all = append(all, fmt.Errorf("%s not copied either", count(c.more, "more file")))
	}
	return errors.Join(append(all, c.err)...)
}

// failed notes why something is not copied. It returns the error that ends the copy of the rest as well, if there was one.
func (c *nfsCopy) failed(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil || c.err != nil:
	case c.ctx.Err() != nil || concernsAll(err):
		c.err = err
	case len(c.omitted) < mostListed:
		c.omitted = append(c.omitted, err)
	default:
		c.more++
	}
	return c.err
}

// concernsAll reports whether other files would fail for the same reason: there is no space, or the server does not answer.
func concernsAll(err error) bool {
	var status nfs3.Status
	if errors.As(err, &status) {
		return slices.Contains([]nfs3.Status{nfs3.ErrNoSpc, nfs3.ErrDQuot, nfs3.ErrROFS, nfs3.ErrStale}, status)
	}
	return errors.As(err, new(*rpc.CallError)) || slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS}, func(e error) bool { return errors.Is(err, e) })
}

// begin copies a file as soon as there is a place for it. It returns the error that ended the copy before.
func (c *nfsCopy) begin(do func() error) error {
	c.places <- struct{}{}
	err := c.failed(nil)
	if err != nil {
		<-c.places
		return err
	}
	c.all.Go(func() {
		defer func() { <-c.places }()
		c.failed(c.copied(do()))
	})
	return nil
}

// notCopied is the error of what is neither file nor directory nor link.
func notCopied(name string) error {
	return fmt.Errorf("%s is neither a file nor a directory nor a symbolic link, and so not copied", name)
}

// into finds where the copy of a directory goes: a name that is there would be another one when the command is run again. from is what is
// copied, to where, and in the name in it; slash says that to ends with one, and there that it is a directory already.
func into(from, to, in string, contents, slash, there bool) (inside bool, err error) {
	switch {
	case contents:
		return false, nil
	case slash && !there:
		return false, fmt.Errorf("%s is no directory that is there: leave out the / at its end, and the copy has that name", to)
	case slash:
		return true, nil
	case !there || path.Base(to) == in:
		return false, nil
	}
	return false, fmt.Errorf("%s is there already: %[1]s/ copies to %[1]s/%s, and %s/. copies what is in %[3]s to %[1]s", to, in, from)
}

// passing passes on what is written, counts it, and knows whether that failed: else an error is the server's.
type passing struct {
	w     io.Writer
	meter *meter // nil: it is not counted
	err   error
}

func (p *passing) Write(b []byte) (n int, err error) {
	n, p.err = p.w.Write(b)
	if p.meter != nil {
		p.meter.moved.Add(int64(n))
	}
	return n, p.err
}
