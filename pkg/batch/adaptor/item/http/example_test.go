package httpitem_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/surfin-batch/surfin/internal/testexample"

	"github.com/surfin-batch/surfin/internal/testcomponent"
	httpitem "github.com/surfin-batch/surfin/pkg/batch/adaptor/item/http"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func ExampleComponents() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := map[string]any{"data": []map[string]any{{"id": 1, "name": "Ada"}}, "next": "b"}
		if r.URL.Query().Get("cursor") == "b" {
			page = map[string]any{"data": []map[string]any{{"id": 2, "name": "Grace"}}}
		}
		if err := json.NewEncoder(w).Encode(page); err != nil {
			fmt.Println(err)
		}
	}))
	defer server.Close()
	type customer struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	reader, err := testcomponent.Make[item.Reader](httpitem.Components(), registry.KindReader, testcomponent.Settings{
		"url": server.URL, "items": "data", "page": testcomponent.Settings{"cursor": "next", "param": "cursor"},
	}, registry.BuildContext{Out: item.TypeOf[customer]("customer")})
	if err != nil {
		fmt.Println(err)
		return
	}
	testexample.Print[customer](reader)
	// Output:
	// {ID:1 Name:Ada}
	// {ID:2 Name:Grace}
}
