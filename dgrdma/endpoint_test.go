package dgrdma_test

import (
	"reflect"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/endpoint"
)

// TestEndpointHasWhatTheEngineHas checks that no method of the engine's endpoint is missing or
// takes or returns something else.
func TestEndpointHasWhatTheEngineHas(t *testing.T) {
	engine, face := reflect.TypeFor[*endpoint.Endpoint](), reflect.TypeFor[*dgrdma.Endpoint]()
	for i := range engine.NumMethod() {
		m := engine.Method(i)
		of, ok := face.MethodByName(m.Name)
		if !ok || of.Type.NumIn() != m.Type.NumIn() || of.Type.NumOut() != m.Type.NumOut() {
			t.Errorf("%s is missing, or differs", m.Name)
		}
	}
}
