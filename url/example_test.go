package url_test

import (
	"errors"
	"fmt"

	"github.com/dgrdma/dgrdma/url"
)

func Example() {
	peer, err := url.Parse("ocpi-udp-rdma:192.168.1.5:40123;6f9619ff-8b86-d011-b42d-00c04fc964ff.3145728.1.10")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(peer.Scheme, peer.Dialect, peer.Addr)
	fmt.Println("id", peer.ID, "of", peer.Max, "with", peer.Size, "bytes")

	text, err := peer.Format(url.Spec)
	fmt.Println(text, err)
	// Output:
	// ocpi-udp-rdma opencpi 192.168.1.5:40123
	// id 1 of 10 with 3145728 bytes
	// ocpi-udp-rdma:192.168.1.5;40123;3145728.1.10 <nil>
}

func ExampleParse_short() {
	local, err := url.Parse("udp:7100?profile=fpga&mtu=9000")
	if err != nil {
		fmt.Println(err)
		return
	}
	mtu, _ := local.Options.Get("mtu")
	fmt.Println(local.Addr.Port(), local.Complete(), mtu)
	fmt.Println(local)
	// Output:
	// 7100 false 9000
	// udp:7100?mtu=9000&profile=fpga
}

func ExampleError() {
	_, err := url.Parse("ocpi-ether-rdma:eth0;131072.2.10")
	var wrong *url.Error
	if errors.As(err, &wrong) {
		fmt.Println(wrong.Offset, wrong.Expected)
	}
	fmt.Println(err)
	// Output:
	// 20 '/' and a MAC address
	// dgrdma: endpoint string "ocpi-ether-rdma:eth0;131072.2.10": byte 20: expected '/' and a MAC address, found ";131072.2.10"
}

// A card's string is incomplete until its host adds the suffix.
func ExampleEndpoint_Format() {
	card, err := url.Parse("ocpi-ether-rdma:Ether:eth0/80:1f:12:7c:d7:fa")
	if err != nil {
		fmt.Println(err)
		return
	}
	card.Size, card.ID, card.Max = 131072, 1, 10
	fmt.Println(card.Format(url.Spec))
	_, err = card.Format(url.Prefixed)
	fmt.Println(err)
	// Output:
	// ocpi-ether-rdma:eth0/80:1f:12:7c:d7:fa;131072.1.10 <nil>
	// dgrdma: format endpoint string as prefixed: endpoint has no uuid
}
