module @rounded {
  func.func public @main(%arg0: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %0 = stablehlo.constant dense<12582912.0> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.add %arg0, %1 : tensor<2xf32>
    %3 = stablehlo.optimization_barrier %2 : tensor<2xf32>
    %4 = stablehlo.round_nearest_even %arg0 : tensor<2xf32>
    return %4, %3 : tensor<2xf32>, tensor<2xf32>
  }
}
