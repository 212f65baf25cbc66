module @linear {
  func.func public @main(%arg0: tensor<2x8xbf16>, %arg1: tensor<4x8xbf16>, %arg2: tensor<4xbf16>) -> tensor<2x4xbf16> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x8xbf16>, tensor<4x8xbf16>) -> tensor<2x4xf32>
    %1 = stablehlo.convert %arg2 : (tensor<4xbf16>) -> tensor<4xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    %3 = stablehlo.add %0, %2 : tensor<2x4xf32>
    %4 = stablehlo.convert %3 : (tensor<2x4xf32>) -> tensor<2x4xbf16>
    return %4 : tensor<2x4xbf16>
  }
}
