package main

import (
	"cmp"
	"errors"
	"io"
	"syscall"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/internal/refused"
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

// filesOfAPair is how many file descriptors a connection whose ends are in this process may lack, at most: it has two sockets, and
// each end polls with a few more. Where it failed, some are closed again.
const filesOfAPair = 8

// failedHere returns why a run of both ends in this process failed. An end that has no file descriptor left may only be silent to
// the other one: so that of the server counts before the client's error, and a lack of spare ones.
func failedHere(client, server, spare error) error {
	var none syscall.Errno
	switch {
	case errors.Is(client, errInterrupted), errors.Is(client, bench.ErrInterrupted), refused.NoFiles(client):
		return client
	case refused.NoFiles(server) && errors.As(server, &none):
		return none
	case spare != nil:
		return spare
	}
	return client
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
