package opencpi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/opencpi"
)

// must keeps the example short; programs do better.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// carried is a descriptor as the other side reads it.
func carried(d opencpi.Descriptor) (read opencpi.Descriptor) {
	if err := json.Unmarshal(must(json.Marshal(d)), &read); err != nil {
		log.Fatal(err)
	}
	return read
}

// A consumer and a producer that exchange descriptors as JSON. Either side may be
// OpenCPI's: then its own tools carry them.
func Example() {
	consumer, producer := must(link.Open("udp:127.0.0.1", nil)), must(link.Open("udp:127.0.0.1", nil))
	defer consumer.Close()
	defer producer.Close()
	toProducer, toConsumer := must(consumer.Endpoint().Dial(producer.URL())), must(producer.Endpoint().Dial(consumer.URL()))

	in, offer, err := opencpi.Offer(consumer, toProducer, &link.Options{Buffers: 4, Size: 2048})
	if err != nil {
		log.Fatal(err)
	}
	out, answer, err := opencpi.Attach(producer, toConsumer, carried(offer), nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := opencpi.Connect(in, carried(answer)); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	if err := out.Out.Send(ctx, 7, []byte("samples")); err != nil {
		log.Fatal(err)
	}
	m := must(in.In.Recv(ctx))
	fmt.Println(m.Opcode, string(m.Bytes))
	// Output: 7 samples
}
