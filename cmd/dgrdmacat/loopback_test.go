package main

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkLoopback runs bench with both ends in this process. From it comes the
// profile that the compiler uses, default.pgo:
//
//	go test -trimpath ./cmd/dgrdmacat -run '^$' -bench Loopback -benchtime 1x -cpuprofile cmd/dgrdmacat/default.pgo
func BenchmarkLoopback(b *testing.B) {
	for _, args := range []string{
		"--size 1048576 --mtu 1500", "--size 1048576 --mtu 1500 --gso off --gro off", "--size 64 --mtu 1500",
		"--size 65536 --mtu 1500 --peers 64", "--link --size 262144 --mtu 1500", "--link --size 64 --buffers 1024 --mtu 1500",
	} {
		b.Run(strings.ReplaceAll(args, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				var out, errs strings.Builder
				if code := run(b.Context(), strings.Fields("bench --seconds 3 "+args), &stdio{strings.NewReader(""), &out, &errs}); code != exitOK {
					b.Fatal(errs.String())
				}
				if testing.Verbose() {
					fmt.Print(out.String())
				}
			}
		})
	}
}
