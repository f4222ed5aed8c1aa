// Filecopy copies a file from one host to another over a link.
//
//	dgrdma-filecopy receive FILE                   prints where it is, and writes what comes
//	dgrdma-filecopy send FILE ENDPOINT-STRING      sends it there
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/dgrdma/dgrdma/link"
)

const usage = "usage: dgrdma-filecopy receive FILE | dgrdma-filecopy send FILE ENDPOINT-STRING"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "receive":
		err = receive(ctx, "udp", args[1], os.Stdout)
	case len(args) == 3 && args[0] == "send":
		err = send(ctx, args[1], args[2])
	case len(args) == 1 && args[0] == "-h":
		fmt.Println(usage)
	default:
		err = errors.New(usage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dgrdma-filecopy:", err)
		os.Exit(1)
	}
}

func receive(ctx context.Context, local, name string, out io.Writer) (err error) {
	host, err := link.Open(local, nil)
	if err != nil {
		return err
	}
	defer func() {
		// Not Close: the sender waits until it is told that all has arrived.
		err = errors.Join(err, host.Shutdown(ctx))
	}()
	port, err := host.Listen("filecopy", nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, host.URL())
	l, err := port.Accept(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	// Under its own name only when it is whole.
	part, err := os.Create(name + ".part")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	_, err = io.Copy(part, l.In)
	if err = errors.Join(err, part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), name)
}

func send(ctx context.Context, name, to string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	host, err := link.Open("udp", nil)
	if err != nil {
		return err
	}
	defer host.Close()
	l, err := host.Dial(ctx, to, "filecopy", nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(l.Out, file); err != nil {
		return err
	}
	return l.Close() // all of it has arrived
}
