// Command release makes what is published of a commit: for each architecture an archive and
// a Debian package, and their sums.
//
//	go run ./release           # of HEAD, into the directory dist
//	go run ./release -check    # makes all of it twice, and compares
//
// Everyone who has the commit and the same Go gets the same bytes, wherever the sources lie
// and whatever is set in the environment: all times are the commit's. "dgrdmacat version"
// says which Go that is.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	o := options{log: os.Stderr}
	flag.StringVar(&o.out, "o", "dist", "the `directory` that all is put into")
	archs := flag.String("arch", "amd64,arm64", "`list` of architectures")
	flag.BoolVar(&o.check, "check", false, "make all of it once more, elsewhere and from nothing, and compare: some minutes")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./release [flags]   (in a clone)")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	o.archs = strings.Split(*archs, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := release(ctx, ".", o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type options struct {
	out   string
	archs []string
	check bool
	log   io.Writer
}

// release makes the release of what is committed in a clone.
func release(ctx context.Context, clone string, o options) (err error) {
	c, err := commitOf(ctx, clone)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "dgrdma-release.")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	all, err := c.make(ctx, filepath.Join(work, "one"), "", o)
	if err != nil {
		return err
	}
	if o.check {
		// Nothing that the first build left is used, and paths are longer.
		again, err := c.make(ctx, filepath.Join(work, "the", "other"), filepath.Join(work, "cache"), o)
		if err != nil {
			return err
		}
		if err := same(all, again); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	sums := sumsOf(all)
	all["SHA256SUMS"] = []byte(sums)
	for name, data := range all {
		if err := os.WriteFile(filepath.Join(o.out, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprint(o.log, sums)
	if o.check {
		fmt.Fprintln(o.log, "made twice, and the same each time")
	}
	return nil
}

// make builds the commit below a directory that it makes, and returns what is published, by
// its name.
func (c *commit) make(ctx context.Context, dir, cache string, o options) (map[string][]byte, error) {
	w, err := c.checkOut(ctx, dir, cache)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]byte)
	for _, arch := range o.archs {
		fmt.Fprintf(o.log, "building %s for %s in %s\n", c.hash, arch, dir)
		p, err := w.build(ctx, arch)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arch, err)
		}
		name, data, err := p.archive()
		if err != nil {
			return nil, err
		}
		all[name] = data
		if name, data, err = p.debian(); err != nil {
			return nil, err
		}
		all[name] = data
	}
	return all, nil
}

// same says in what two builds differ.
func same(one, other map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(one)) {
		a, b := one[name], other[name]
		if bytes.Equal(a, b) {
			continue
		}
		at := 0
		for at < min(len(a), len(b)) && a[at] == b[at] {
			at++
		}
		return fmt.Errorf("two builds of one commit differ: %s has %d bytes and %d, the first that differs is at %d", name, len(a), len(b), at)
	}
	if len(one) != len(other) {
		return errors.New("two builds of one commit differ: the other one made more files")
	}
	return nil
}

// sumsOf are the lines that sha256sum -c reads.
func sumsOf(all map[string][]byte) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(all[name]), name)
	}
	return b.String()
}
