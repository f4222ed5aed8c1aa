package nfs3_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/localfs"
	"github.com/dgrdma/dgrdma/rpc"
)

// A server of files in memory, and a client that writes and reads one.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := rpc.NewServer(nil)
	nfs3.NewServer(localfs.NewMemory(nil), &nfs3.ServerOptions{Export: "/data"}).Register(server)
	go server.ServeTCP(listener)
	defer server.Close()

	ctx := context.Background()
	client, err := nfs3.Dial(ctx, "tcp:"+listener.Addr().String(), "/data", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	files, err := nfs3.NewVolume(ctx, client, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := files.WriteFile("hello", []byte("hello, world"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	b, err := files.ReadFile("hello")
	fmt.Printf("%s, %v\n", b, err)
	_, err = files.ReadFile("none")
	fmt.Println(err)
	// Output:
	// hello, world, <nil>
	// open none: LOOKUP: no such file or directory
}

// A volume is an fs.FS of the standard library.
func ExampleVolume() {
	files, err := nfs3.NewVolume(context.Background(), localfs.NewMemory(nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	files.Mkdir("dir", 0o755)
	files.WriteFile("dir/a", []byte("a"), 0o644)
	files.WriteFile("dir/b", []byte("bb"), 0o600)
	fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		fmt.Println(path, d.Type(), err)
		return nil
	})
	// Output:
	// . d--------- <nil>
	// dir d--------- <nil>
	// dir/a ---------- <nil>
	// dir/b ---------- <nil>
}
