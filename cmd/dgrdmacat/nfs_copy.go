package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
	"time"
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
	err    error
	left   []string // of the goroutine that walks

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
	_, err = fmt.Fprintf(std.err, "copied %s, %s in %.2f s, %s MB/s\n", count(r.Files, "file"), count(r.Bytes, "byte"), r.Seconds, threeDigits(r.MBPerS))
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

// many copies the files of a directory: walk calls c.begin for each. It returns the first error.
func (c *nfsCopy) many(walk func() error) error {
	stop := c.meter.show(c.std.err)
	defer stop()
	c.failed(walk())
	c.all.Wait()
	if n := len(c.left); c.err == nil && n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" (and %d more such)", n-1)
		}
		c.err = fmt.Errorf("%s is neither a file nor a directory nor a symbolic link, and so not copied%s", c.left[0], more)
	}
	return c.err
}

// failed notes the first error, and returns it.
func (c *nfsCopy) failed(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	return c.err
}

// begin copies a file as soon as there is a place for it. It returns the error of those before.
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

// leftOut notes what is neither file nor directory nor link: it is not copied, which is a failure at the end.
func (c *nfsCopy) leftOut(name string) { c.left = append(c.left, name) }

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
