package link_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/dgrdma/dgrdma/link"
)

// must keeps the examples short; programs do better.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func open() *link.Host { return must(link.Open("udp:127.0.0.1", nil)) }

// A file, or anything else that is read and written, copied over a link.
func Example_fileCopy() {
	there, here, ctx := open(), open(), context.Background()
	defer there.Close()
	defer here.Close()
	port := must(there.Listen("copy", nil))
	sent := make(chan error)
	go func() {
		out := must(here.Dial(ctx, there.URL(), "copy", nil))
		must(io.Copy(out.Out, strings.NewReader("what the file holds")))
		sent <- out.Close() // end of file, and all is there
	}()
	in := must(port.Accept(ctx))
	defer in.Close()
	var file bytes.Buffer
	must(io.Copy(&file, in.In))
	fmt.Println(file.String(), <-sent)
	// Output: what the file holds <nil>
}

// Requests and answers: a link in both directions. The server answers on the receive goroutine, so no
// other one is woken.
func Example_requests() {
	server, client, ctx := open(), open(), context.Background()
	defer server.Close()
	defer client.Close()
	port := must(server.Listen("upper", &link.Options{
		Directions: link.Both, Buffers: 8, Size: 64,
		Handle: func(l *link.Link, m link.Message) {
			// A client that waits for each answer always leaves a buffer free.
			if b, free := l.Out.TryAcquire(); free && !m.EOF {
				l.Out.Commit(b, m.Opcode, copy(b.Bytes, bytes.ToUpper(m.Bytes)))
			}
		},
	}))
	go port.Accept(ctx)
	l := must(client.Dial(ctx, server.URL(), "upper", &link.Options{Directions: link.Both, Buffers: 8, Size: 64}))
	for i, text := range []string{"one", "two"} {
		if err := l.Out.Send(ctx, uint8(i), []byte(text)); err != nil {
			log.Fatal(err)
		}
		m := must(l.In.Recv(ctx))
		fmt.Println(m.Opcode, string(m.Bytes))
		l.In.Release(m)
	}
	// Output:
	// 0 ONE
	// 1 TWO
}

// Three stages: the one in the middle fills the last one's buffers in place.
func Example_pipeline() {
	first, middle, last, ctx := open(), open(), open(), context.Background()
	defer first.Close()
	defer middle.Close()
	defer last.Close()
	words, lengths := must(middle.Listen("words", nil)), must(last.Listen("lengths", nil))
	go func() {
		out := must(first.Dial(ctx, middle.URL(), "words", nil))
		for _, w := range []string{"a", "pipeline", "of", "three", "stages"} {
			if err := out.Out.Send(ctx, 0, []byte(w)); err != nil {
				log.Fatal(err)
			}
		}
		out.Close()
	}()
	go func() {
		in := must(words.Accept(ctx))
		out := must(middle.Dial(ctx, last.URL(), "lengths", nil))
		for m, err := range in.In.Messages(ctx) {
			if err != nil {
				log.Fatal(err)
			}
			b := must(out.Out.Acquire(ctx))
			b.Bytes[0] = byte(len(m.Bytes))
			out.Out.Commit(b, 0, 1)
		}
		out.Close()
		in.Close()
	}()
	in := must(lengths.Accept(ctx))
	defer in.Close()
	sum := 0
	for m, err := range in.In.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		sum += int(m.Bytes[0])
	}
	fmt.Println(sum, "letters")
	// Output: 22 letters
}
