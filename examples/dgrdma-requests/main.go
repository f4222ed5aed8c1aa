// Requests is a server that answers requests, and a client: a link in both
// directions, one message a request.
//
//	dgrdma-requests serve                     prints where it is, and answers
//	dgrdma-requests ask ENDPOINT-STRING TEXT  asks for TEXT in upper case
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/dgrdma/dgrdma/link"
)

// Opcodes of requests. Answers carry that of the request.
const (
	toUpper = iota + 1
	toLower
)

const usage = "usage: dgrdma-requests serve | dgrdma-requests ask ENDPOINT-STRING TEXT"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 1 && args[0] == "serve":
		err = serve(ctx, "udp", os.Stdout)
	case len(args) > 2 && args[0] == "ask":
		var answer string
		if answer, err = ask(ctx, args[1], toUpper, strings.Join(args[2:], " ")); err == nil {
			fmt.Println(answer)
		}
	case len(args) == 1 && args[0] == "-h":
		fmt.Println(usage)
	default:
		err = errors.New(usage)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "dgrdma-requests:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, local string, out io.Writer) error {
	host, err := link.Open(local, nil)
	if err != nil {
		return err
	}
	defer host.Close()
	port, err := host.Listen("requests", &link.Options{Directions: link.Both, Buffers: 16, Size: 4096})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, host.URL())
	for {
		l, err := port.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			defer l.Close()
			for m, err := range l.In.Messages(ctx) {
				if err != nil {
					fmt.Fprintln(os.Stderr, "dgrdma-requests:", err)
					return
				}
				answer := bytes.ToUpper(m.Bytes)
				if m.Opcode == toLower {
					answer = bytes.ToLower(m.Bytes)
				}
				if err := l.Out.Send(ctx, m.Opcode, answer); err != nil {
					fmt.Fprintln(os.Stderr, "dgrdma-requests:", err)
					return
				}
			}
		}()
	}
}

func ask(ctx context.Context, server string, opcode uint8, text string) (string, error) {
	host, err := link.Open("udp", nil)
	if err != nil {
		return "", err
	}
	defer host.Close()
	l, err := host.Dial(ctx, server, "requests", &link.Options{Directions: link.Both, Buffers: 16, Size: 4096})
	if err != nil {
		return "", err
	}
	defer l.Close()
	if err := l.Out.Send(ctx, opcode, []byte(text)); err != nil {
		return "", err
	}
	m, err := l.In.Recv(ctx)
	if err != nil {
		return "", err
	}
	return string(m.Bytes), l.In.Release(m)
}
