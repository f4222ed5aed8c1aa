package main

import (
	"cmp"
	"errors"
	"io"

	"github.com/dgrdma/dgrdma/url"
)

// benchFailure is the object that --json prints where nothing was measured.
type benchFailure struct {
	builtFrom
	Transport string `json:"transport,omitempty"` // "": not known
	Op        string `json:"op,omitempty"`
	Link      bool   `json:"link,omitempty"`
	Error     string `json:"error"`
}

// objectOf has --json print an object, or with a sweep an array, whatever becomes of a measurement.
func (o *benchOptions) objectOf(std *stdio, measure func(std *stdio) error) error {
	out := &watchedOutput{Writer: std.out}
	err := measure(&stdio{std.in, out, std.err})
	if err == nil || out.written || std.isClosedPipe(err) {
		return err
	}
	f := &benchFailure{Link: o.link, Error: err.Error()}
	if o.tcp != nil {
		f.Transport, f.Op = tcpScheme, o.tcp.String()
	} else if u, wrong := url.Parse(cmp.Or(o.to, "udp")); wrong == nil {
		f.Transport = wireName(u)
	}
	return errors.Join(err, printJSON(std.out, []*benchFailure{f}, o.sweep.from != 0))
}

// watchedOutput is an output that knows whether anything was written.
type watchedOutput struct {
	io.Writer
	written bool
}

func (w *watchedOutput) Write(b []byte) (int, error) {
	w.written = true
	return w.Writer.Write(b)
}
