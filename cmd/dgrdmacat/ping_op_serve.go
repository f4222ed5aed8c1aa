package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/verbs/latency"
)

func pingOpServe(ctx context.Context, o *pingOptions, stderr io.Writer) error {
	at, err := parseTCP("--serve", o.serve, "0")
	if err != nil {
		return err
	}
	room := &latency.Server{Verbs: o.verbs()}
	room.Verbs.GiveUp = opGiveUp
	if o.size.given {
		room.Most = uint32(o.size.value)
	}
	if o.file != "" {
		f, err := scratch(o.file.String(), room.MostBytes())
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		room.File = f
	}
	s := &tcpServer{at: at, once: o.once, urlFile: &o.urlFile, doing: "answering", log: newPeerLog(stderr), metrics: &o.metrics}
	s.accept = func(ctx context.Context, h *verbs.Host, r *verbs.Request) (func(context.Context) (string, error), error) {
		c, err := room.Accept(ctx, h, r)
		if errors.Is(err, latency.ErrStranger) {
			err = strangerTCP("ping --op", r.Private, err)
		}
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (string, error) {
			err := c.Run(ctx)
			return saidOf(c), goneTCP("", err)
		}, nil
	}
	return s.serve(ctx)
}

// saidOf says what a client did. Of what is one-sided nobody here has heard.
func saidOf(c *latency.Session) string {
	said := fmt.Sprintf("%v of %s", c.Op, count(int(c.Size), "byte"))
	if c.Op.OneWay() {
		said += fmt.Sprintf(", %d answered", c.Answered())
	}
	return said
}

// scratch makes a file for so many bytes, which peers will change.
func scratch(name string, size uint32) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("--file %s: it is there, and would be overwritten: name another one, or remove it", name)
	}
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	if err := latency.CheckFile(f, size); err != nil {
		f.Close()
		os.Remove(name)
		return nil, fmt.Errorf("--file %s: %w", name, err)
	}
	return f, nil
}
