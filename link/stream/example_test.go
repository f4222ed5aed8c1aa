package stream_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/link/stream"
)

// must keeps the examples short; programs do better.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A file moves from one host to another. When Send returns nil it is there, under its
// name and on disk.
func Example() {
	ctx, dir := context.Background(), must(os.MkdirTemp("", "stream"))
	defer os.RemoveAll(dir)
	there := must(link.Open("udp:127.0.0.1", &link.Config{Memory: stream.Memory}))
	defer there.Close()
	port := must(stream.Listen(there, nil))
	copied := filepath.Join(dir, "copy")
	received := make(chan error)
	go func() {
		s := must(port.Accept(ctx))
		received <- s.Receive(ctx, must(stream.CreateFile(copied, false)))
	}()

	here := must(link.Open("udp:127.0.0.1", nil))
	defer here.Close()
	const content = "what the file holds"
	s := must(stream.Dial(ctx, here, there.URL(), int64(len(content)), &stream.Options{Checksum: true}))
	if err := s.Send(ctx, strings.NewReader(content)); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %d bytes sent\n", must(os.ReadFile(copied)), s.Result().Sent)
	fmt.Println(<-received)
	// Output:
	// what the file holds, 19 bytes sent
	// <nil>
}

// Both sides send, and each knows where the other's stream ends.
func ExampleStream_Exchange() {
	ctx, both := context.Background(), &stream.Options{Duplex: true}
	server := must(link.Open("udp:127.0.0.1", &link.Config{Memory: stream.Memory}))
	defer server.Close()
	port := must(stream.Listen(server, both))
	served := make(chan error)
	go func() {
		s := must(port.Accept(ctx))
		var question bytes.Buffer
		served <- s.Exchange(ctx, strings.NewReader("42"), stream.Writer(&question))
	}()

	client := must(link.Open("udp:127.0.0.1", &link.Config{Memory: stream.Memory}))
	defer client.Close()
	s := must(stream.Dial(ctx, client, server.URL(), stream.Unknown, both))
	var answer bytes.Buffer
	err := s.Exchange(ctx, strings.NewReader("what is it?"), stream.Writer(&answer))
	fmt.Println(&answer, err, <-served)
	// Output: 42 <nil> <nil>
}
