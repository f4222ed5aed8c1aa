package netconn_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/link/netconn"
)

// must keeps the example short; programs do better.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A web server, and a client that knows it by a name.
func Example() {
	there, here := must(link.Open("udp:127.0.0.1", nil)), must(link.Open("udp:127.0.0.1", nil))
	defer there.Close()
	defer here.Close()
	l := must(netconn.Listen(there, "80", nil))
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "this is %s", r.Host)
	}))
	d := &netconn.Dialer{Host: here, Lookup: func(context.Context, string) (string, error) { return there.URL(), nil }}
	client := http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
	answer := must(client.Get("http://camera/"))
	defer answer.Body.Close()
	fmt.Println(answer.Status, string(must(io.ReadAll(answer.Body))))
	// Output: 200 OK this is camera
}
